# SPDX-License-Identifier: MIT
"""What the checkpoints of tests/data/checkpoints.tar.xz hold: configurations of each kind of the
published code, and tensors whose values follow from their names, so that nothing but layout and
names need be stored.  tests/make_checkpoints.py writes them with PyTorch, tests/test_checkpoints.py
reads them without."""
import pathlib
import sys
import zlib

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tools"))
import convert_checkpoint as cc  # noqa: E402
from make_golden import block  # noqa: E402

BACKBONE = {
    "name": "e2former", "encoder": "default", "irreps_node_embedding": "8x0e+8x1e+8x2e",
    "num_layers": 2, "max_radius": 5.0, "basis_type": "gaussiansmear", "number_of_basis": 8,
    "num_attn_heads": 4, "attn_scalar_head": 4, "irreps_head": "2x0e+2x1e+2x2e",
    "norm_layer": "rms_norm_sh", "tp_type": "QK_alpha+triton",
    "attn_type": "so2-first-order+zero-order", "ffn_type": "s3", "edge_embedtype": "default",
    "with_cluster": "node", "long_range_layers": 1, "long_cutoff_lower": 0.1,
    "long_cutoff_upper": 8.0, "max_neighbors": 32, "dropout": 0.1, "alpha_drop": 0}
ALONE = {"with_cluster": False, "num_layers": 1, "attn_type": "zero-order"}

# kind: changes of the backbone, changes beside it
KINDS = {
    "published": ({}, {}),
    "zero-order": (ALONE, {"loss_unit": "kcal/mol"}),
    "bell": ({"with_cluster": "node_bell", "num_layers": 1, "attn_type": "zero-order"}, {}),
    "qkdot": (dict(ALONE, tp_type="QKdot_alpha+triton"), {}),
    "qkdots": (dict(ALONE, tp_type="QKdotS_alpha"), {}),
    "softplus": (dict(ALONE, tp_type="QK_softplus+triton2", max_neighbors=None), {}),
    "sphere": (ALONE, {"with_moe": "escn"}),
    "degree-1": (dict(ALONE, attn_type="so2-first-order", irreps_head="2x0e+2x1e",
                      irreps_node_embedding="8x0e+8x1e"), {}),
    "degree-3": (dict(ALONE, attn_type="so2-first-order", irreps_head="2x0e+2x1e+2x2e+2x3e",
                      irreps_node_embedding="8x0e+8x1e+8x2e+8x3e"), {}),
}


def config(kind):
    changes, beside = KINDS[kind]
    return dict({"backbone_config": dict(BACKBONE, **changes), "AutoGradForce": True,
                 "dataset_name_list": "omol25"}, **beside)


def values(name, shape):
    """Multiples of 1/16 below 1, which 16 bits hold exactly."""
    count = int(np.prod(shape))
    start = zlib.crc32(name.encode()) % 31
    return (((start + 7 * np.arange(count)) % 31 - 15) / 16).astype(np.float32).reshape(shape)


def product_constants(lmax):
    """For a vector along y: per output row one input row and its coefficient."""
    rows, weights = [], []
    for l3 in range(lmax + 1):
        for l1 in cc.paths(l3, lmax):
            for column in block(l1, l3)[:, 1, :].T:
                at = int(np.argmax(np.abs(column)))
                rows.append(l1 * l1 + at if column[at] else 0)
                weights.append(column[at])
    return np.array(rows), np.array(weights, np.float32)


def besides(description):
    """Tensors that a published checkpoint has and that do not enter the energy."""
    C, K, L = description["channels"], description["bases"], description["lmax"]
    base, rows = "decoder.decoder.", np.repeat(np.arange(L + 1), 2 * np.arange(L + 1) + 1)
    out = {"decoder.embedding.weight": None, base + "default_node_embedding.weight": None}
    out = {name: values(name, (256, C)) for name in out}
    for name, shape in (("decoder.unifiedtokentoembedding.weight", (C, C)),
                        ("decoder.unifiedtokentoembedding.bias", (C,)),
                        (base + "heads2basis.weight", (K, 4)), (base + "heads2basis.bias", (K,)),
                        (base + "Jd_list.0", (1, 1)), (base + "Jd_list.1", (3, 3)),
                        (base + "edge_deg_embed_dense.sph.W", ((L + 1) ** 2, 5)),
                        (base + "edge_deg_embed_dense.proj.weight", (L + 1, C, 2 * C)),
                        (base + "edge_deg_embed_dense.proj.bias", (C,)),
                        (base + "blocks.0.norm_1.balance_degree_weight", ((L + 1) ** 2, 1))):
        out[name] = values(name, shape)
    out[base + "blocks.0.norm_1.expand_index"] = rows
    for name, stage in zip(("rbf", "rbf_long"), description["stages"]):
        out[f"{base}{name}.offset"] = np.linspace(0, stage["cutoff"], K).astype(np.float32)
    counts = np.array([len(cc.paths(l3, L)) for l3 in range(L + 1)])[rows]
    for i, order in enumerate(description["stages"][0]["orders"]):
        tp = f"{base}blocks.{i}.ga.first_order_tp.so2_tp."
        if order == "first":
            out[tp + "path_norm"] = (1 / np.sqrt(counts)).reshape(1, -1, 1).astype(np.float32)
            out[tp + "selected_idx"], out[tp + "CG_weight"] = product_constants(L)
    return out


def tensors(kind, head="omol25"):
    """What the converter is to give, and the whole checkpoint."""
    description = cc.describe(config(kind), head)
    kept = {name: values(name, shape) for name, shape in cc.expected_tensors(description).items()}
    return kept, dict(kept, **besides(description))
