// SPDX-License-Identifier: MIT
//
// Level 3, back end `faiss`: a flat index of the chunk's candidates and a range search for its
// receivers.  FAISS works in float and may expand |a - b|^2 = |a|^2 + |b|^2 - 2ab, which loses
// 2^-24 of the squares, so points are centred on the chunk and the radius is enlarged by a bound of
// that loss; every pair that comes back is then decided in double.  Exceptions end here.
#include <algorithm>
#include <cmath>
#include <exception>
#include <new>
#include <vector>

#include <omp.h>

#include <faiss/IndexFlat.h>
#include <faiss/impl/AuxIndexStructures.h>

extern "C" {
#include "neighbor/faiss_index.h"
#include "runtime/error.h"
}

namespace {

// FAISS would start a team of threads per call; the task has one core.  The setting belongs to the
// calling thread, so other threads keep theirs.
class one_thread {
 public:
  one_thread() : before(omp_get_max_threads())
  {
    omp_set_num_threads(1);
  }
  ~one_thread()
  {
    omp_set_num_threads(before);
  }

 private:
  int before;
};

// Squared radius that no pair within `reach` escapes.  With points of length <= size, each of the
// three sums of three products is off by at most 4 * 2^-24 of the sum of its terms' magnitudes, and
// the final two additions by 2^-24 of at most 4 size^2 each: below 24 * 2^-24 size^2 in all.
float search_radius(double reach, double size)
{
  return (float)((reach * reach + std::ldexp(32 * size * size, -24)) * (1 + 1e-6));
}

int search_chunk(tsi_search *search, const tsi_query *queries, int32_t nq,
                 const tsi_points *candidates)
{
  float low[3] = {HUGE_VALF, HUGE_VALF, HUGE_VALF}, high[3] = {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF};
  for (int32_t i = 0; i < nq; i++)
    for (int k = 0; k < 3; k++) {
      low[k] = std::min(low[k], queries[i].p[k]);
      high[k] = std::max(high[k], queries[i].p[k]);
    }
  const float centre[3] = {0.5f * (low[0] + high[0]), 0.5f * (low[1] + high[1]),
                           0.5f * (low[2] + high[2])};
  std::vector<float> from(3 * (size_t)nq), to(3 * (size_t)candidates->n);
  double size2 = 0;
  for (int32_t c = 0; c < candidates->n; c++) {
    float *p = &to[3 * (size_t)c];
    p[0] = candidates->x[c] - centre[0];
    p[1] = candidates->y[c] - centre[1];
    p[2] = candidates->z[c] - centre[2];
    size2 = std::max(size2, (double)p[0] * p[0] + (double)p[1] * p[1] + (double)p[2] * p[2]);
  }
  for (int32_t i = 0; i < nq; i++) {
    double sum = 0;
    for (int k = 0; k < 3; k++) {
      const float p = from[3 * (size_t)i + k] = queries[i].p[k] - centre[k];
      sum += (double)p * p;
    }
    size2 = std::max(size2, sum);
  }
  // centring rounds each coordinate once more, by 2^-24 of its size
  const double size = std::sqrt(size2),
               reach = search->upper + search->margin + std::ldexp(4 * size, -24);
  faiss::IndexFlatL2 index(3);
  index.add(candidates->n, to.data());
  faiss::RangeSearchResult found(nq);
  index.range_search(nq, from.data(), search_radius(reach, size), &found);
  for (int32_t i = 0; i < nq; i++) {
    const size_t first = found.lims[i], n = found.lims[i + 1] - first;
    TS_TRY(tsi_search_reserve(search, (int32_t)n));
    int32_t *hit = search->log + search->log_size;
    for (size_t k = 0; k < n; k++) {
      hit[k] = candidates->id[found.labels[first + k]];
      search->unsure[k] = (int32_t)k;
    }
    if (!std::is_sorted(hit, hit + n)) std::sort(hit, hit + n);
    tsi_search_row(search, &queries[i], (int32_t)n, (int32_t)n);
  }
  return 0;
}

}  // namespace

extern "C" int tsi_search_faiss(tsi_search *search, tsi_query *queries, int32_t nq,
                                const tsi_points *candidates, int depth)
{
  (void)depth;
  search->chunks++;
  try {
    const one_thread guard;
    return search_chunk(search, queries, nq, candidates);
  } catch (const std::bad_alloc &) {
    return tsi_fail(TS_ERR_MEMORY, "no memory for a FAISS search of %d atoms among %d", nq,
                    candidates->n);
  } catch (const std::exception &e) {
    return tsi_fail(TS_ERR_SYSTEM, "FAISS failed on %d atoms among %d: %s", nq, candidates->n,
                    e.what());
  }
}
