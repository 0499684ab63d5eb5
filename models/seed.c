/* SPDX-License-Identifier: MIT
 *
 * Element k (C order) of the tensor called NAME under SEED is
 *
 *   x = splitmix64(fnv1a64(NAME) + SEED * 0x9E3779B97F4A7C15 + k)   (all mod 2^64)
 *   value = base + amplitude * ((x >> 11) 2^-52 - 1)
 *
 * so any element of any tensor can be had by itself.  Base and amplitude follow the kind of tensor,
 * such that activations stay of order one at any width: look-up tables 0 and 0.8, scales of norms 1
 * and 0.3, matrices 0 and 1.2 sqrt(3 / last dimension), biases 0 and 0.3.  The sphere head's
 * directions are no weights but the published constants: a spiral of 18 points, each scaled by the
 * inverse of its share of the neighbourhood. */
#include "models/seed.h"

#include "models/clebsch.h"
#include "runtime/error.h"
#include "runtime/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t fnv1a64(const char *name)
{
  uint64_t hash = UINT64_C(0xCBF29CE484222325);
  for (; *name; ++name)
    hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001B3);
  return hash;
}

static uint64_t splitmix64(uint64_t x)
{
  x += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
  return x ^ x >> 31;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
  const size_t n = strlen(end);
  return length >= n && !memcmp(text + length - n, end, n);
}

static void kind(const ts_tensor_spec *spec, double *base, double *amplitude)
{
  const char *last = strrchr(spec->name, '.') + 1;
  const size_t module = (size_t)(last - 1 - spec->name); /* length of what stands before */
  const bool table = ends_with(spec->name, module, "embedding") ||
                     ends_with(spec->name, module, ".embedding_charge") ||
                     ends_with(spec->name, module, ".embedding_multiplicity");
  *base = 0.0;
  *amplitude = 0.3;
  if (table && spec->rank == 2)
    *amplitude = 0.8;
  else if (!strcmp(last, "affine_weight") || (!strcmp(last, "weight") && spec->rank == 1))
    *base = 1.0;
  else if (spec->rank >= 2 && strcmp(last, "bias"))
    *amplitude = 1.2 * sqrt(3.0 / (double)spec->dim[spec->rank - 1]);
}

static void fill(const ts_tensor_spec *spec, uint64_t seed, int64_t count, double *out)
{
  double base, amplitude;
  kind(spec, &base, &amplitude);
  const uint64_t start = fnv1a64(spec->name) + seed * UINT64_C(0x9E3779B97F4A7C15);
  for (int64_t k = 0; k < count; ++k) {
    const uint64_t x = splitmix64(start + (uint64_t)k);
    out[k] = base + amplitude * ((double)(x >> 11) * 0x1p-52 - 1.0);
  }
}

/* Harmonics, 1/sqrt(4 pi) in degree 0, of the vectors themselves: degree l grows as length^l. */
static void fill_directions(int lmax, double *out)
{
  const int rows = (lmax + 1) * (lmax + 1);
  double p[TS_SPHERE_POINTS][3], scale[TS_SPHERE_POINTS], total = 0.0;
  const double golden = (1.0 + sqrt(5.0)) / 2.0, pi = acos(-1.0);
  for (int i = 0; i < TS_SPHERE_POINTS; ++i) {
    const double theta = 2.0 * pi * i / golden, z = 1.0 - 2.0 * (i + 0.5) / TS_SPHERE_POINTS;
    p[i][0] = cos(theta) * sqrt(1.0 - z * z);
    p[i][1] = sin(theta) * sqrt(1.0 - z * z);
    p[i][2] = z;
  }
  for (int i = 0; i < TS_SPHERE_POINTS; ++i) {
    double near = 0.0;
    for (int k = 0; k < TS_SPHERE_POINTS; ++k) {
      const double x = p[i][0] - p[k][0], y = p[i][1] - p[k][1], z = p[i][2] - p[k][2];
      near += exp(-(x * x + y * y + z * z) / 0.15);
    }
    scale[i] = 1.0 / near;
    total += scale[i];
  }
  for (int i = 0; i < TS_SPHERE_POINTS; ++i, out += rows) {
    const double s = scale[i] * TS_SPHERE_POINTS / total;
    const double v[3] = {s * p[i][0], s * p[i][1], s * p[i][2]};
    ts_harmonics(lmax, v, out);
    for (int r = 0; r < rows; ++r)
      out[r] *= 0.5 / sqrt(pi);
  }
}

static int add_tensor(const ts_model_desc *desc, const ts_tensor_spec *spec, uint64_t seed,
                      ts_weights *w)
{
  double *data;
  int64_t count = 1;
  for (int i = 0; i < spec->rank; ++i)
    count *= spec->dim[i];
  TS_TRY(TSI_NEW(data, count));
  if (ends_with(spec->name, strlen(spec->name), ".sphharm_weights"))
    fill_directions(desc->lmax, data);
  else
    fill(spec, seed, count, data);
  const int status = ts_weights_add(w, spec->name, spec->rank, spec->dim, data);
  free(data);
  return status;
}

static int add_description(const ts_model_desc *desc, ts_weights *w)
{
  char *text;
  TS_TRY(ts_model_desc_format(desc, &text));
  const int status = ts_weights_set_metadata(w, "tessera", text);
  free(text);
  return status;
}

int ts_weights_seed(const ts_model_desc *desc, uint64_t seed, ts_weights **out)
{
  ts_tensor_spec *spec;
  int count;
  *out = NULL;
  TS_TRY(ts_model_tensors(desc, true, &spec, &count));
  int status = ts_weights_create(out);
  for (int i = 0; i < count && !status; ++i)
    status = add_tensor(desc, &spec[i], seed, *out);
  if (!status) status = add_description(desc, *out);
  free(spec);
  if (status) ts_weights_destroy(out);
  return status;
}
