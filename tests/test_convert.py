# SPDX-License-Identifier: MIT
"""tools/convert_checkpoint.py: a checkpoint as published, made here from seeded weights and the
tensors that a published one has besides, becomes a file that `tessera model show` accepts, with the
same numbers; every fault is refused by name.  (Files that PyTorch wrote: test_checkpoints.py.)"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

SOURCE = pathlib.Path(os.environ.get("TS_SOURCE_DIR", "."))
PROGRAM = str(pathlib.Path(os.environ.get("TS_BUILD_DIR", ".")) / "tessera")
sys.path.insert(0, str(SOURCE / "tools"))
sys.dont_write_bytecode = True
import convert_checkpoint as cc  # noqa: E402

BACKBONE = {
    "name": "e2former", "encoder": "default", "irreps_node_embedding": "16x0e+16x1e+16x2e",
    "num_layers": 3, "max_radius": 5.0, "basis_type": "gaussiansmear", "number_of_basis": 16,
    "num_attn_heads": 8, "attn_scalar_head": 4, "irreps_head": "2x0e+2x1e+2x2e",
    "norm_layer": "rms_norm_sh", "tp_type": "QK_alpha+triton",
    "attn_type": "so2-first-order+zero-order", "ffn_type": "s3", "edge_embedtype": "default",
    "with_cluster": "node", "long_range_layers": 1, "long_cutoff_lower": 0.1,
    "long_cutoff_upper": 8.0, "max_neighbors": None, "dropout": 0.1, "alpha_drop": 0}
CONFIG = {"backbone_config": BACKBONE, "AutoGradForce": True, "dataset_name_list": "omol25"}


def read(path):
    raw = pathlib.Path(path).read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    description = json.loads(header.pop("__metadata__")["tessera"])
    kinds = {"F32": "<f4", "F64": "<f8"}
    return description, {
        name: np.frombuffer(raw[start + t["data_offsets"][0]:start + t["data_offsets"][1]],
                            kinds[t["dtype"]]).reshape(t["shape"]) for name, t in header.items()}


def published(folder):
    """A checkpoint's tensors: those of the model, and what the published code stores besides."""
    description = cc.describe(CONFIG, "omol25")
    (folder / "model.json").write_text(json.dumps(description))
    subprocess.run([PROGRAM, "model", "seed", "--description", folder / "model.json", "--seed",
                    "3", "-o", folder / "seeded.safetensors"], check=True)
    _, tensors = read(folder / "seeded.safetensors")
    rng = np.random.default_rng(1)

    def noise(*shape): return rng.normal(size=shape).astype(np.float32)
    base, tp = "decoder.decoder.", "decoder.decoder.blocks.0.ga.first_order_tp.so2_tp."
    rows = np.concatenate([np.full(2 * l3 + 1, l3) for l3 in range(3)])
    counts = np.array([1, 3, 2])[rows]
    # written out: for a vector along y, per output row one input row and one weight
    h, a = np.sqrt(0.5), np.sqrt(0.3)
    selected = [2, 0, 0, 0, 3, 0, 1, 5, 6, 7, 0, 1, 2, 3, 0, 8, 7, 0, 5, 4]
    weights = [1 / np.sqrt(3), 0, 1, 0, -h, 0, h, a, np.sqrt(0.4), a,
               0, h, np.sqrt(2 / 3), h, 0, -np.sqrt(2 / 3), -np.sqrt(1 / 6), 0, np.sqrt(1 / 6),
               np.sqrt(2 / 3)]
    besides = {
        "decoder.embedding.weight": noise(256, 16),
        "decoder.unifiedtokentoembedding.weight": noise(16, 16),
        "decoder.unifiedtokentoembedding.bias": noise(16),
        base + "default_node_embedding.weight": noise(256, 16),
        base + "heads2basis.weight": noise(16, 8), base + "heads2basis.bias": noise(16),
        base + "rbf.offset": np.linspace(0, 5, 16).astype(np.float32),
        base + "rbf_long.offset": np.linspace(0, 8, 16).astype(np.float32),
        base + "Jd_list.0": noise(1, 1), base + "Jd_list.1": noise(3, 3),
        base + "edge_deg_embed_dense.sph.W": noise(9, 5),
        base + "edge_deg_embed_dense.proj.weight": noise(3, 16, 32),
        base + "edge_deg_embed_dense.proj.bias": noise(16),
        base + "edge_deg_embed_dense.proj.expand_index": rows,
        base + "blocks.0.norm_1.balance_degree_weight": noise(9, 1),
        base + "blocks.0.norm_1.expand_index": rows,
        tp + "path_norm": (1 / np.sqrt(counts)).reshape(1, -1, 1).astype(np.float32),
        tp + "selected_idx": np.array(selected), tp + "CG_weight": np.array(weights, np.float32)}
    return tensors, besides


def refused(expected, tensors, config=None, **options):
    try:
        with tempfile.TemporaryDirectory() as folder:
            cc.convert(tensors, config or CONFIG, folder + "/x.safetensors", **options)
    except cc.ConvertError as error:
        assert expected in str(error), f"{error} lacks {expected!r}"
        return
    raise AssertionError(f"not refused: {expected}")


def refused_key(key, value, expected, top=False):
    config = dict(CONFIG, **{key: value}) if top else \
        dict(CONFIG, backbone_config=dict(BACKBONE, **{key: value}))
    refused(expected, ALL, config)


def test_good(folder):
    path = str(folder / "out.safetensors")
    cc.convert(ALL, CONFIG, path, reference_energies={"8": -2041.8, "1": -13.6}, note="a note")
    shown = subprocess.run([PROGRAM, "model", "show", path], capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    description, tensors = read(path)
    assert [s["orders"] for s in description["stages"]] == [["first", "zero", "zero"], ["zero"]]
    assert description["merge"] == "cluster" and description["stages"][1]["lower"] == 0.1
    assert description["reference_energies"]["8"] == -2041.8
    assert set(tensors) == set(MODEL) - set(cc.NORM_FINAL)
    for name in tensors:
        assert np.array_equal(tensors[name], MODEL[name]), name
    cc.convert(ALL, CONFIG, path, without_charge=True)
    assert set(read(path)[1]) == set(MODEL) - set(cc.NORM_FINAL) - set(cc.CHARGE)
    assert subprocess.run([PROGRAM, "model", "show", path], capture_output=True).returncode == 0


def test_forms():
    refused_key("tp_type", "QK_relu", "tp_type is 'QK_relu'")
    refused_key("tp_type", "QK_alpha+smooth", "tp_type is 'QK_alpha+smooth'")
    refused_key("attn_type", "second-order", "attn_type is 'second-order'")
    refused_key("with_cluster", "mixcluster", "with_cluster is 'mixcluster'")
    refused_key("norm_layer", "layer_norm", "norm_layer is 'layer_norm'")
    refused_key("edge_embedtype", "default+wolayernorm", "edge_embedtype is")
    refused_key("max_neighbors", 0, "max_neighbors is 0")
    refused_key("max_neighbors", "many", "max_neighbors is 'many'")
    uncapped = {k: v for k, v in BACKBONE.items() if k != "max_neighbors"}
    refused("max_neighbors is missing", ALL, dict(CONFIG, backbone_config=uncapped))
    refused_key("irreps_node_embedding", "16x0e+8x1e+8x2e", "irreps_node_embedding is")
    refused_key("irreps_node_embedding", "16x0e+16x1e", "degrees up to 1 (irreps_node_embedding) and 2")
    more = "+".join(f"16x{l}e" for l in range(5))
    high = dict(BACKBONE, irreps_node_embedding=more, irreps_head=more)
    refused("degrees up to 4", ALL, dict(CONFIG, backbone_config=high))
    refused_key("number_of_basis", None, "number_of_basis is missing")
    refused_key("new_switch", 1, "new_switch (here 1) is not known")
    refused_key("AutoGradForce", False, "AutoGradForce is false", top=True)
    refused_key("with_moe", "moe", "with_moe is 'moe'", top=True)
    refused_key("loss_unit", "mev", "loss_unit is 'mev'", top=True)
    refused_key("backbone_config", None, "no backbone_config", top=True)
    capped = dict(CONFIG, backbone_config=dict(BACKBONE, max_neighbors=32))
    stages = cc.describe(capped, "omol25")["stages"]
    assert [s["max_neighbors"] for s in stages] == [32, 80]
    stages = cc.describe(capped, "omol25", all_neighbours=True)["stages"]
    assert all("max_neighbors" not in s for s in stages)
    plain = dict(CONFIG, backbone_config=dict(BACKBONE, with_cluster=False))
    assert len(cc.describe(plain, "omol25")["stages"]) == 1


def test_other_forms(folder):
    """A checkpoint of each form that is computed goes through, and through the program."""
    for key, value, expected in (("tp_type", "QKdot_alpha+triton", ("score", "qkdot")),
                                 ("tp_type", "QKdotS_alpha", ("score", "qkdots")),
                                 ("tp_type", "QK_softplus", ("weighting", "softplus")),
                                 ("with_moe", "escn", ("head_kind", "sphere"))):
        config = dict(CONFIG, with_moe=value) if key == "with_moe" else \
            dict(CONFIG, backbone_config=dict(BACKBONE, **{key: value}))
        description = cc.describe(config, "omol25")
        assert description[expected[0]] == expected[1]
        (folder / "form.json").write_text(json.dumps(description))
        subprocess.run([PROGRAM, "model", "seed", "--description", folder / "form.json", "--seed",
                        "5", "-o", folder / "form.safetensors"], check=True)
        _, tensors = read(folder / "form.safetensors")
        path = str(folder / "form-out.safetensors")
        cc.convert(tensors, config, path)
        shown = subprocess.run([PROGRAM, "model", "show", path], capture_output=True, text=True)
        assert shown.returncode == 0, shown.stderr
        for name in set(tensors) - set(MODEL):
            refused(f"{name} is missing", {n: t for n, t in tensors.items() if n != name}, config)
    vec = "decoder.decoder.blocks.0.ga.sum_vec"
    refused(f"{vec}: expected 1", dict(ALL, **{vec: np.ones((9, 3), np.float32)}))


def test_tensors():
    value = "decoder.decoder.blocks.0.ga.proj_value.weight"
    tp = "decoder.decoder.blocks.0.ga.first_order_tp.so2_tp."
    refused(f"{value} is missing", {n: t for n, t in ALL.items() if n != value})
    refused(f"{value} has shape [16, 3, 16]", dict(ALL, **{value: ALL[value].transpose(1, 0, 2)}))
    refused(f"{value} has type int64", dict(ALL, **{value: ALL[value].astype(np.int64)}))
    refused(f"{value} is not finite", dict(ALL, **{value: ALL[value] * np.float32(np.inf)}))
    refused("tensor decoder.extra is not known", dict(ALL, **{"decoder.extra": np.zeros(3)}))
    offset = "decoder.decoder.rbf.offset"
    refused(f"{offset}: expected 16 evenly", dict(ALL, **{offset: ALL[offset] * 1.01}))
    for last in ("CG_weight", "path_norm"):
        refused(tp + last, dict(ALL, **{tp + last: -ALL[tp + last]}))
    refused(tp + "selected_idx", dict(ALL, **{tp + "selected_idx": ALL[tp + "selected_idx"][::-1]}))


def test_heads():
    more = {n.replace("omol25", "spice"): t for n, t in ALL.items() if "omol25" in n}
    refused("choose one with --head; the checkpoint has: omol25, spice", dict(ALL, **more))
    refused("no energy head 'oc20'", ALL, head="oc20")
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/x.safetensors"
        assert cc.convert(dict(ALL, **more), CONFIG, path, head="spice")["head"] == "spice"


with tempfile.TemporaryDirectory() as name:
    work = pathlib.Path(name)
    MODEL, BESIDES = published(work)
    ALL = dict(MODEL, **BESIDES)
    test_good(work)
    test_forms()
    test_other_forms(work)
    test_tensors()
    test_heads()
print("conversion: good files, refused forms, refused tensors")
