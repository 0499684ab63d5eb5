#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turn a published E2Former-V2 checkpoint into a Tessera weight file.

    tessera model convert CHECKPOINT.pt CONFIG.yaml -o FILE.safetensors [options]

CONFIG.yaml is the flattened configuration that comes with the checkpoint.  The tensors keep their
names.  What does not enter the energy is left out: the list is DROPPED below, nothing else, and
what can be recomputed (the Gaussians' centres, the Clebsch-Gordan coefficients, the path weights)
is compared with what Tessera computes before it is left out.  A configuration that Tessera does not
compute, and any missing, extra or mis-shaped tensor, is an error that names it.

Needs NumPy, and PyYAML for the configuration; not PyTorch (torch_file.py reads the checkpoint and
runs nothing that it contains).
"""
import argparse
import fnmatch
import json
import os
import re
import sys

import numpy as np

sys.dont_write_bytecode = True
import torch_file  # noqa: E402

# The second-moment constants of the gates (SiLU and sigmoid of a normal variable).
SILU_SCALE, SIGMOID_SCALE = 1.6791767923989418, 1.8467055342154763
ELEMENT_WIDTH, ELEMENT_ROWS, EMBEDDING_ROWS, CHARGE_ROWS = 128, 256, 300, 30
SPHERE_POINTS = 18

DROPPED = [
    "decoder.embedding.weight",
    "decoder.unifiedtokentoembedding.*",
    "decoder.decoder.default_node_embedding.weight",
    "decoder.decoder.heads2basis.*",
    "decoder.decoder.rbf.offset",
    "decoder.decoder.rbf_long.offset",
    "decoder.decoder.Jd_list.*",
    "decoder.decoder.edge_deg_embed_dense.sph.W",
    "decoder.decoder.edge_deg_embed_dense.proj.*",
    "*.expand_index",
    "*.balance_degree_weight",
    "*.first_order_tp.so2_tp.path_norm",
    "*.first_order_tp.so2_tp.selected_idx",
    "*.first_order_tp.so2_tp.CG_weight",
    "*.ga.sum_vec",
]
CHARGE = ["decoder.embedding_charge.weight", "decoder.embedding_multiplicity.weight",
          "decoder.mix_cm.0.weight", "decoder.mix_cm.0.bias"]
NORM_FINAL = ["decoder.decoder.norm_final.affine_weight", "decoder.decoder.norm_final.affine_bias"]

# Keys of the configuration's backbone that have no effect on the energy of a trained model.
WITHOUT_EFFECT = set(
    """encoder_embed_dim ffn_embedding_dim num_attention_heads dropout num_encoder_layers
    use_padding use_fp16_backbone use_compile compile use_faiss flatten_atoms_threshold
    expanded_token_cutoff pbc_expanded_token_cutoff pbc_expanded_num_cell_per_direction
    pbc_max_radius alpha_drop proj_drop out_drop drop_path_rate rescale_degree nonlinear_message
    attn_biastype add_rope time_embed sparse_attn dynamic_sparse_attn_threthod force_head""".split())


# What the published `tp_type` computes, as keys of the description; the suffixes choose kernels.
TP_TYPES = {"QK_alpha": {}, "QKdot_alpha": {"score": "qkdot"}, "QKdotS_alpha": {"score": "qkdots"},
            "QK_softplus": {"weighting": "softplus"}}
TP_SUFFIXES = {"triton", "triton2"}


class ConvertError(Exception):
    """What is wrong with the input; the message is for the user."""


# ---------------------------------------------------------------- the configuration
def irreps(key, text):
    """'256x0e+256x1e+256x2e' -> (256, 2); equal multiplicities of even parity only."""
    parts = [re.fullmatch(r"\s*(\d+)x(\d+)e\s*", p) for p in str(text).split("+")]
    if not all(parts) or [int(p[2]) for p in parts] != list(range(len(parts))) \
            or len({p[1] for p in parts}) != 1:
        raise ConvertError(f"backbone_config.{key} is {text!r}; supported are equal numbers of each"
                           " degree, such as '256x0e+256x1e+256x2e'")
    return int(parts[0][1]), len(parts) - 1


def orders(attn_type, layers):
    """The orders of the short stage: 'A+B' means A in the first half and B in the second."""
    names = {"zero-order": "zero", "so2-first-order": "first"}
    kinds = str(attn_type).split("+")
    if len(kinds) > 2 or any(k not in names for k in kinds):
        raise ConvertError(f"backbone_config.attn_type is {attn_type!r}; supported are"
                           f" {', '.join(names)} and two of them joined by +")
    return [names[kinds[0] if i < layers // 2 else kinds[-1]] for i in range(layers)]


class Backbone:
    """The configuration's backbone; remembers which keys were looked at."""

    def __init__(self, values):
        self.values, self.seen = values, set()

    def __call__(self, key, default=None):
        self.seen.add(key)
        value = self.values.get(key)
        value = default if value is None else value
        if value is None:
            raise ConvertError(f"backbone_config.{key} is missing")
        return value

    def only(self, key, default, *supported):
        value = self(key, default)
        if value not in supported:
            raise ConvertError(f"backbone_config.{key} is {value!r}; supported:"
                               f" {' or '.join(map(repr, supported))}")

    def check_rest(self):
        for key in sorted(set(self.values) - self.seen - WITHOUT_EFFECT):
            raise ConvertError(f"backbone_config.{key} (here {self.values[key]!r}) is not known")


def check_forms(config, backbone):
    """Forms of the published code that Tessera does not compute are refused by key and value;
    those that it does compute are returned as keys of the description."""
    if not config.get("AutoGradForce", True):
        raise ConvertError("AutoGradForce is false: the checkpoint's forces come from a network of"
                           " their own, not from its energy")
    heads = {"escn": "sphere", "none": "mlp", "false": "mlp"}
    head = str(config.get("with_moe")).lower()
    if head not in heads:
        raise ConvertError(f"with_moe is {config['with_moe']!r}; supported: false (the usual energy"
                           " head) or 'escn' (the one on the sphere)")
    backbone.only("name", None, "e2former")
    backbone.only("encoder", "default", "default")
    backbone.only("basis_type", "gaussiansmear", "gaussiansmear")
    backbone.only("norm_layer", "rms_norm_sh", "rms_norm_sh")
    backbone.only("edge_embedtype", "default", "default")
    backbone.only("ffn_type", None, "s3")
    backbone.only("atom_type_cnt", ELEMENT_ROWS, ELEMENT_ROWS)
    kind, *suffixes = str(backbone("tp_type", "QK_alpha")).split("+")
    if kind not in TP_TYPES or not set(suffixes) <= TP_SUFFIXES:
        raise ConvertError(f"backbone_config.tp_type is {backbone('tp_type')!r}; supported:"
                           f" {', '.join(TP_TYPES)}, with +{' or +'.join(sorted(TP_SUFFIXES))}")
    forms = dict(TP_TYPES[kind])
    if heads[head] != "mlp":
        forms["head_kind"] = heads[head]
    return forms


def bound_neighbours(backbone, stages, all_neighbours):
    """The published code keeps the nearest senders only, 2.5 times as many in the long stage."""
    backbone.seen.add("max_neighbors")
    if all_neighbours:
        return
    if "max_neighbors" not in backbone.values:
        raise ConvertError("backbone_config.max_neighbors is missing; null if there is no bound")
    cap = backbone.values["max_neighbors"]
    if cap in (None, "None"):
        return
    if type(cap) is not int or not 1 <= cap <= 400:
        raise ConvertError(f"backbone_config.max_neighbors is {cap!r}; expected 1 to 400, or null")
    for stage, factor in zip(stages, (1, 2.5)):
        stage["max_neighbors"] = int(cap * factor)


def long_stage(backbone):
    """The second stage, or None."""
    cluster = str(backbone("with_cluster", False))
    if cluster.lower() in ("false", "none", "0"):
        backbone.seen |= {"long_range_layers", "long_cutoff_lower", "long_cutoff_upper"}
        return None
    if not cluster.startswith("node"):
        raise ConvertError(f"backbone_config.with_cluster is {cluster!r}; supported: false,"
                           " 'node...'")
    return {"cutoff": float(backbone("long_cutoff_upper")),
            "lower": float(backbone("long_cutoff_lower")),
            "envelope": "bell" if "bell" in cluster else "poly",
            "orders": ["zero"] * int(backbone("long_range_layers")),
            "exclude_senders": [0, 1]}


def describe(config, head, all_neighbours=False):
    """The model description of a flattened configuration (a dictionary)."""
    if not isinstance(config, dict) or not isinstance(config.get("backbone_config"), dict):
        raise ConvertError("the configuration has no backbone_config; expected a flattened file")
    backbone = Backbone(config["backbone_config"])
    forms = check_forms(config, backbone)
    channels, lmax = irreps("irreps_node_embedding", backbone("irreps_node_embedding"))
    head_channels, head_lmax = irreps("irreps_head", backbone("irreps_head"))
    if not 1 <= lmax <= 3 or head_lmax != lmax:
        raise ConvertError(f"degrees up to {lmax} (irreps_node_embedding) and {head_lmax}"
                           " (irreps_head); supported: 1 to 3, the same in both")
    units = {"ev": "eV", "kcal/mol": "kcal/mol"}
    unit = str(config.get("loss_unit", "ev")).lower()
    if unit not in units:
        raise ConvertError(f"loss_unit is {config['loss_unit']!r}; supported: {', '.join(units)}")
    short = {"cutoff": float(backbone("max_radius")), "lower": 1e-4, "envelope": "poly",
             "orders": orders(backbone("attn_type"), int(backbone("num_layers")))}
    far = long_stage(backbone)
    bound_neighbours(backbone, [short, far] if far else [short], all_neighbours)
    description = {
        "channels": channels, "heads": int(backbone("num_attn_heads")),
        "head_dim": int(backbone("attn_scalar_head")), "head_channels": head_channels,
        "lmax": lmax, "bases": int(backbone("number_of_basis")),
        "average_degree": float(backbone("avg_degree", 23.01)), "head": head,
        "silu_scale": SILU_SCALE, "sigmoid_scale": SIGMOID_SCALE,
        "stages": [short] + ([far] if far else []), "merge": "cluster" if far else None,
        "energy_unit": units[unit], **forms}
    backbone.check_rest()
    return description


def choose_head(tensors, wanted):
    """The energy head: the only one, or the one asked for."""
    heads = sorted({n.split(".")[2] for n in tensors if n.startswith("head.energy_heads.")})
    if wanted is None and len(heads) == 1:
        return heads[0]
    if wanted not in heads:
        raise ConvertError((f"there is no energy head {wanted!r}" if wanted else
                            "several energy heads; choose one with --head")
                           + f"; the checkpoint has: {', '.join(heads) or 'none'}")
    return wanted


# ---------------------------------------------------------------- the tensors
def paths(l3, lmax):
    """Input degrees that a vector carries to degree l3."""
    return [l1 for l1 in range(max(l3 - 1, 0), min(l3 + 1, lmax) + 1) if l1 + l3 > 0]


def expected_tensors(description):
    """{name: shape} of everything that enters the energy."""
    C, H = description["channels"], description["heads"]
    d, K, L = description["head_dim"], description["bases"], description["lmax"]
    m = min(128, K // 2)
    out = {}

    def linear(p, o, i): out[p + ".weight"], out[p + ".bias"] = (o, i), (o,)
    def layer_norm(p, o): out[p + ".weight"] = out[p + ".bias"] = (o,)
    def so3(p, i, o): out[p + ".weight"], out[p + ".bias"] = (L + 1, o, i), (o,)
    def norm(p): out[p + ".affine_weight"], out[p + ".affine_bias"] = (L + 1, C), (C,)

    def radial(p, i, o):
        linear(p + ".net.0", m, i)
        layer_norm(p + ".net.1", m)
        linear(p + ".net.3", m, m)
        layer_norm(p + ".net.4", m)
        linear(p + ".net.6", o, m)

    def scalars(p):
        half = H * d // 2
        out[p + ".weight"] = out[p + ".weight2"] = (L + 1, half, C)
        out[p + ".bias"] = (1, 1, half)
        linear(p + ".final_linear.0", half, half * (L + 1))
        layer_norm(p + ".final_linear.1", half)
        linear(p + ".final_linear.3", H * d, half)

    def block(p, order):
        norm(p + ".norm_1")
        for side in ("source", "target"):
            out[f"{p}.ga.{side}_embedding.weight"] = (ELEMENT_ROWS, ELEMENT_WIDTH)
        score = description.get("score", "qk")
        radial(p + ".ga.fc_easy", K + 2 * ELEMENT_WIDTH, H if score == "qkdot" else 2 * H)
        if score == "qkdot":
            so3(p + ".ga.dot_linear", C, K)
            radial(p + ".ga.rad_func_m0", K + 2 * ELEMENT_WIDTH, K * (L + 1))
            linear(p + ".ga.fc_m0", H, K * (L + 1))
        elif score == "qkdots":
            so3(p + ".ga.dot_linear", C, H // (L + 1) + 1)
            linear(p + ".ga.direction_linear.0", H, H)
            layer_norm(p + ".ga.direction_linear.1", H)
            linear(p + ".ga.direction_linear.3", H, H)
        scalars(p + ".ga.query_linear")
        scalars(p + ".ga.key_linear")
        so3(p + ".ga.proj_value", C, C)
        wide = H * description["head_channels"]
        if order == "zero":
            so3(p + ".ga.proj_zero", C, C)
        else:
            for l3 in range(L + 1):
                out[f"{p}.ga.first_order_tp.so2_tp.out_linear.{l3}.weight"] = \
                    (wide, len(paths(l3, L)) * C)
            so3(p + ".ga.proj_first", wide, C)
        norm(p + ".norm_ffn")
        so3(p + ".ffn.slinear_1", C, C)
        linear(p + ".ffn.gate.gates", C * (L + 1), C)
        so3(p + ".ffn.slinear_2", C, C)

    base = "decoder.decoder"
    out[CHARGE[0]] = out[CHARGE[1]] = (CHARGE_ROWS, C)
    linear("decoder.mix_cm.0", C, 2 * C)
    for side in ("source", "target"):
        out[f"{base}.edge_deg_embed_dense.{side}_embedding.weight"] = (EMBEDDING_ROWS, K)
    for l in range(L + 1):
        radial(f"{base}.edge_deg_embed_dense.gbf_projs.{l}", 3 * K, C)
    for blocks, stage in zip(("blocks", "long_blocks"), description["stages"]):
        for i, order in enumerate(stage["orders"]):
            block(f"{base}.{blocks}.{i}", order)
    norm(base + ".norm_final")
    if description["merge"] == "cluster":
        norm(base + ".pre_norm_node")
        norm(base + ".norm_cluster")
        so3(base + ".final_linear", 2 * C, C)
    head = f"head.energy_heads.{description['head']}"
    if description.get("head_kind") == "sphere":
        out[head + ".sphharm_weights"] = (SPHERE_POINTS, (L + 1) ** 2)
        linear(head + ".fc1", C, C)
        linear(head + ".fc2", C, C)
        out[head + ".fc3.weight"] = (1, C)
        return out
    for i, width in ((0, C), (2, C), (4, 1)):
        linear(f"{head}.mlp.{i}", width, C)
    return out


# ---------------------------------------------------------------- checks of what is left out
def clebsch_along_y(l1, l3):
    """[2 l1+1, 2 l3+1]: the block of degree l1 with the vector y (see models/clebsch.c).  y is the
    polar axis, so row m meets row m, or, where the degree stays, row -m."""
    G = np.zeros((2 * l1 + 1, 2 * l3 + 1))
    for m in range(-min(l1, l3), min(l1, l3) + 1):
        if l1 == l3:
            G[l1 - m, l3 + m] = m / np.sqrt(l1 * (l1 + 1))
        else:
            high = max(l1, l3)
            G[l1 + m, l3 + m] = np.sqrt((high ** 2 - m ** 2) / (high * (2 * l1 + 1)))
    return G


def check_close(name, tensors, half, expected, what):
    """`half`: the names of tensors that were stored with 16 bits a number."""
    found = np.asarray(tensors[name], float)
    close = {"rtol": 2 ** -8, "atol": 1e-3} if name in half else {"rtol": 0, "atol": 2e-5}
    if found.shape != np.shape(expected) or not np.allclose(found, expected, **close):
        raise ConvertError(f"tensor {name}: {what}")


def check_clebsch(prefix, tensors, half, lmax):
    """The published code keeps, for a vector along y, one input row and one weight per output row."""
    rows, weights = [], []
    for l3 in range(lmax + 1):
        for l1 in paths(l3, lmax):
            G = clebsch_along_y(l1, l3)
            for column in G.T:
                at = int(np.argmax(np.abs(column)))
                weights.append(column[at])
                rows.append(l1 * l1 + at if abs(column[at]) > 1e-9 else 0)
    what = "differs from the Clebsch-Gordan coefficients of this program: another convention"
    check_close(prefix + "CG_weight", tensors, half, np.array(weights), what)
    found = np.asarray(tensors[prefix + "selected_idx"])
    used = np.abs(weights) > 1e-9
    if found.shape != used.shape or np.any(found[used] != np.array(rows)[used]):
        raise ConvertError(f"tensor {prefix}selected_idx: {what}")


def check_recomputed(tensors, description, half):
    """Compare what is left out, but could differ, with what Tessera computes."""
    K, L, stages = description["bases"], description["lmax"], description["stages"]
    for name, stage in zip(("rbf", "rbf_long"), stages):
        full = f"decoder.decoder.{name}.offset"
        if full in tensors:
            cutoff = stage["cutoff"]
            check_close(full, tensors, half, np.linspace(0, cutoff, K),
                        f"expected {K} evenly spaced centres from 0 to {cutoff}")
    norms = np.concatenate([np.full(2 * l3 + 1, 1 / np.sqrt(len(paths(l3, L))))
                            for l3 in range(L + 1)])
    for name in tensors:
        prefix, last = name.rsplit(".", 1)
        if last == "sum_vec":
            degree = np.repeat(np.arange(L + 1), 2 * np.arange(L + 1) + 1)
            check_close(name, tensors, half, np.eye(L + 1)[degree],
                        "expected 1 where a row is of a degree, else 0")
        if not prefix.endswith(".so2_tp"):
            continue
        if last == "path_norm":
            check_close(name, tensors, half, norms.reshape(1, -1, 1),
                        "expected one over the root of the number of paths")
        elif last == "CG_weight":
            if prefix + ".selected_idx" not in tensors:
                raise ConvertError(f"tensor {prefix}.selected_idx is missing")
            check_clebsch(prefix + ".", tensors, half, L)


# ---------------------------------------------------------------- conversion
def is_dropped(name, description):
    if description["merge"] == "cluster" and name in NORM_FINAL:
        return True
    other_head = name.startswith("head.energy_heads.") and \
        not name.startswith(f"head.energy_heads.{description['head']}.")
    return other_head or any(fnmatch.fnmatchcase(name, p) for p in DROPPED)


def select(tensors, description, without_charge=False, half=()):
    """{name: array} of what enters the energy, after all checks."""
    check_recomputed(tensors, description, half)
    expected = expected_tensors(description)
    drop = set(CHARGE if without_charge else []) | \
        (set(NORM_FINAL) if description["merge"] == "cluster" else set())
    out = {}
    for name, shape in expected.items():
        if name in drop:
            continue
        if name not in tensors:
            raise ConvertError(f"tensor {name} is missing; expected shape {list(shape)}")
        array = np.asarray(tensors[name])
        if array.shape != shape:
            raise ConvertError(f"tensor {name} has shape {list(array.shape)}; expected"
                               f" {list(shape)}")
        if array.dtype not in (np.float32, np.float64):
            raise ConvertError(f"tensor {name} has type {array.dtype}; expected float")
        if not np.all(np.isfinite(array)):
            raise ConvertError(f"tensor {name} is not finite")
        out[name] = array
    for name in tensors:
        if name not in out and name not in drop and not is_dropped(name, description):
            raise ConvertError(f"tensor {name} is not known; nothing is left out silently")
    return out


def write_safetensors(path, tensors, description):
    """Written aside, flushed, renamed; tensors in order of name."""
    names = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64"}
    header, offset = {"__metadata__": {"tessera": json.dumps(description)}}, 0
    for name in sorted(tensors):
        array = tensors[name]
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(tensors):
            array = np.ascontiguousarray(tensors[name])
            out.write(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        out.flush()
        os.fsync(out.fileno())
    os.replace(path + ".part", path)


def convert(tensors, config, path, head=None, all_neighbours=False, without_charge=False,
            reference_energies=None, note=None, elements=None, half=()):
    """Write `path` from a checkpoint's arrays and configuration; returns the description."""
    description = describe(config, choose_head(tensors, head), all_neighbours)
    if reference_energies is not None:
        description["reference_energies"] = reference_energies
    if note is not None:
        description["note"] = note
    if elements is not None:
        description["elements"] = elements
    write_safetensors(path, select(tensors, description, without_charge, half), description)
    return description


# ---------------------------------------------------------------- files
def load_checkpoint(path):
    """{name: array} of what stands under 'model', and the names of those that had 16 bits."""
    try:
        state = torch_file.read(path)
    except torch_file.FileError as error:
        raise ConvertError(f"{path} {error}") from None
    model = state.get("model") if isinstance(state, dict) else None
    if not isinstance(model, dict):
        keys = ", ".join(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise ConvertError(f"{path}: expected a dictionary with the tensors under 'model'; found"
                           f" {keys[:200]}")
    for name, tensor in model.items():
        if not isinstance(name, str) or not isinstance(tensor, torch_file.Tensor):
            raise ConvertError(f"{path}: model[{name!r}] is no tensor")
    return {n: t.array for n, t in model.items()}, {n for n, t in model.items() if t.half}


def load_config(path):
    try:
        import yaml
    except ImportError:
        raise ConvertError("reading the configuration needs PyYAML (pip install pyyaml)") from None
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.safe_load(file)
    except (OSError, yaml.YAMLError) as error:
        raise ConvertError(f"{path}: {error}") from None


def load_energies(path):
    try:
        with open(path, encoding="utf-8") as file:
            energies = json.load(file)
    except (OSError, ValueError) as error:
        raise ConvertError(f"{path}: {error}") from None
    if not isinstance(energies, dict) or not all(
            k.isdigit() and isinstance(v, (int, float)) for k, v in energies.items()):
        raise ConvertError(f'{path}: expected {{"1": eV, "8": eV, ...}} by atomic number')
    return energies


def atomic_numbers(text):
    """'1,8' -> [1, 8]"""
    numbers = [int(word) for word in text.split(",")]
    if not all(1 <= z <= 118 for z in numbers):
        raise ValueError(text)
    return numbers


def main():
    parser = argparse.ArgumentParser(prog="tessera model convert", description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", metavar="CHECKPOINT.pt")
    parser.add_argument("config", metavar="CONFIG.yaml", help="the flattened configuration")
    parser.add_argument("-o", dest="output", metavar="FILE.safetensors", required=True)
    parser.add_argument("--head", help="the energy head, where the checkpoint has several")
    parser.add_argument("--all-neighbors", action="store_true",
                        help="leave the configuration's bound on the number of neighbours out")
    parser.add_argument("--without-charge", action="store_true",
                        help="leave the tensors for charge and multiplicity out")
    parser.add_argument("--reference-energies", metavar="FILE.json",
                        help='atomic energies to add, {"8": eV, ...}')
    parser.add_argument("--elements", metavar="1,8,...", type=atomic_numbers,
                        help="atomic numbers of what the model was taught")
    parser.add_argument("--note", help="a line kept in the file")
    args = parser.parse_args()
    energies = load_energies(args.reference_energies) if args.reference_energies else None
    tensors, half = load_checkpoint(args.checkpoint)
    description = convert(tensors, load_config(args.config), args.output, args.head,
                          args.all_neighbors, args.without_charge, energies, args.note, args.elements,
                          half)
    if half:
        print(f"{args.checkpoint}: {len(half)} of {len(tensors)} tensors have 16 bits a number;"
              " energies are those of the rounded weights")
    print(f"{args.output}: head {description['head']}, {len(description['stages'])} stage(s),"
          f" {description['channels']} channels")


if __name__ == "__main__":
    try:
        main()
    except (ConvertError, OSError) as error:
        print(f"tessera model convert: {error}", file=sys.stderr)
        sys.exit(1)
