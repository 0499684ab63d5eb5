/* SPDX-License-Identifier: MIT
 *
 * Cuts of the order on virtual ranks: exact counts, an owner for every atom that depends neither on
 * where it was nor on how the cuts were found, ties, weights within their capacity. */
#include "neighbor/partition.h"
#include "tests/neighbor_cases.h"

enum { MOST = 20000 };

static uint64_t key[MOST];
static ts_gidx gid[MOST];
static double weight[MOST];
static int32_t owner[MOST], expected[MOST];

/* Cut atoms 0 .. n-1, dealt to the ranks in equal slices or by chance, gathered in `out`. */
static int cut(int ranks, int n, const ts_partition_params *params, bool weighted, uint64_t *dealt,
               int32_t *out)
{
  const ts_ranks virtual = ts_ranks_virtual(ranks);
  ts_shard *shard = calloc((size_t)ranks, sizeof *shard);
  const uint64_t **keys = calloc((size_t)ranks, sizeof *keys);
  const double **weights = calloc((size_t)ranks, sizeof *weights);
  int32_t **owners = calloc((size_t)ranks, sizeof *owners);
  int *end = calloc((size_t)ranks, sizeof *end);
  for (int r = 0; r < ranks; r++)
    end[r] = dealt ? below(dealt, n + 1) : (int)((int64_t)n * (r + 1) / ranks);
  if (dealt) { /* some ranks have nothing at all */
    end[ranks - 1] = n;
    for (int r = ranks - 2; r >= 0; r--)
      if (end[r] > end[r + 1]) end[r] = end[r + 1];
  }
  for (int r = 0, at = 0; r < ranks; at = end[r++]) {
    shard[r] = (ts_shard){.n = end[r] - at, .gid = gid + at};
    keys[r] = key + at;
    weights[r] = weight + at;
    owners[r] = out + at;
  }
  const int status =
      ts_partition_cut(&virtual, params, shard, keys, weighted ? weights : NULL, owners);
  free(shard);
  free(keys);
  free(weights);
  free(owners);
  free(end);
  return status;
}

static int by_place(const void *a, const void *b)
{
  const int i = *(const int *)a, j = *(const int *)b;
  if (key[i] != key[j]) return key[i] < key[j] ? -1 : 1;
  return (gid[i] > gid[j]) - (gid[i] < gid[j]);
}

/* Owners by a sort. */
static void cut_by_sort(int ranks, int n)
{
  static int order[MOST];
  for (int i = 0; i < n; i++)
    order[i] = i;
  qsort(order, (size_t)n, sizeof *order, by_place);
  for (int r = 0; r < ranks; r++)
    for (int64_t k = (int64_t)n * r / ranks; k < (int64_t)n * (r + 1) / ranks; k++)
      expected[order[k]] = r;
}

/* Ids in a random order, keys of few or many values. */
static void draw(uint64_t *state, int n, uint64_t values)
{
  for (int i = 0; i < n; i++) {
    gid[i] = i;
    key[i] = next_random(state) % values;
    if (values > 1 && below(state, 4) == 0) key[i] >>= 40; /* crowds */
  }
  for (int i = n - 1; i > 0; i--) {
    const int j = below(state, i + 1);
    const ts_gidx other = gid[j];
    gid[j] = gid[i];
    gid[i] = other;
  }
}

static void compare(int n, const char *what, int ranks)
{
  for (int i = 0; i < n; i++)
    if (owner[i] != expected[i])
      fail_msg("%s, %d atoms on %d ranks: atom %lld is rank %d's, expected %d", what, n, ranks,
               (long long)gid[i], owner[i], expected[i]);
}

static const uint64_t widths[] = {1ULL << 63, 1, 2, 100, 1ULL << 40};

static void every_number_of_ranks(void **state)
{
  (void)state;
  const ts_partition_params params = {0};
  const int sizes[] = {4096, 4097, 5000};
  uint64_t seed = 7;
  for (int t = 0; t < 3; t++) {
    draw(&seed, sizes[t], widths[0]);
    for (int ranks = 1; ranks <= 4096; ranks += ranks < 200 ? 1 : 1 + below(&seed, 400)) {
      cut_by_sort(ranks, sizes[t]);
      ASSERT_OK(cut(ranks, sizes[t], &params, false, NULL, owner));
      compare(sizes[t], "slices", ranks);
    }
    cut_by_sort(4096, sizes[t]);
    ASSERT_OK(cut(4096, sizes[t], &params, false, NULL, owner));
    compare(sizes[t], "slices", 4096);
  }
}

static void any_distribution(void **state)
{
  (void)state;
  const ts_partition_params params = {0}, root = {.root_sort = true};
  uint64_t seed = 11;
  for (int t = 0; t < 600; t++) {
    const int ranks = 1 + below(&seed, t % 10 ? 20 : 300), n = ranks + below(&seed, 3 * ranks + 50);
    draw(&seed, n, widths[t % 5]);
    cut_by_sort(ranks, n);
    ASSERT_OK(cut(ranks, n, &params, false, &seed, owner));
    compare(n, "counted", ranks);
    ASSERT_OK(cut(ranks, n, &root, false, &seed, owner));
    compare(n, "sorted", ranks);
  }
}

static void weights_within_capacity(void **state)
{
  (void)state;
  uint64_t seed = 13;
  static int32_t other[MOST];
  for (int t = 0; t < 600; t++) {
    const int ranks = 1 + below(&seed, 20), n = ranks + below(&seed, 400);
    const ts_partition_params params = {.slack = t % 4 * 0.25};
    const ts_partition_params root = {.slack = params.slack, .root_sort = true};
    draw(&seed, n, widths[t % 5]);
    for (int i = 0; i < n; i++)
      weight[i] = below(&seed, 10) ? below(&seed, 50) : t % 3 ? below(&seed, 5000) : 1e9;
    ASSERT_OK(cut(ranks, n, &params, true, NULL, owner));
    ASSERT_OK(cut(ranks, n, &params, true, &seed, other));
    assert_memory_equal(owner, other, (size_t)n * sizeof *owner);
    ASSERT_OK(cut(ranks, n, &root, true, &seed, other));
    assert_memory_equal(owner, other, (size_t)n * sizeof *owner);
    int count[20] = {0};
    for (int i = 0; i < n; i++)
      count[owner[i]]++;
    for (int r = 0; r < ranks; r++) {
      assert_true(count[r] >= 1);
      assert_true(count[r] <= (1 + params.slack) * n / ranks ||
                  count[r] <= (n + ranks - 1) / ranks);
    }
  }
}

/* Room enough: no rank's weight is further from its share than an atom weighs. */
static void weights_are_even(void **state)
{
  (void)state;
  enum { N = 20000, K = 16 };
  const ts_partition_params params = {.slack = K};
  uint64_t seed = 17;
  double of_rank[K] = {0}, total = 0;
  draw(&seed, N, widths[0]);
  for (int i = 0; i < N; i++) {
    weight[i] = key[i] >> 62 ? 1 + below(&seed, 5) : 40 + below(&seed, 20);
    total += weight[i];
  }
  ASSERT_OK(cut(K, N, &params, true, NULL, owner));
  for (int i = 0; i < N; i++)
    of_rank[owner[i]] += weight[i];
  for (int r = 0; r < K; r++)
    assert_true(fabs(of_rank[r] - total / K) <= 60);
}

/* A light and a heavy half, and a capacity that matters: light ranks fill up to it, and the heavy
 * half is shared by all that are left. */
static void light_ranks_are_full(void **state)
{
  (void)state;
  enum { N = 20000, K = 16 };
  const ts_partition_params params = {.slack = 0.25};
  uint64_t seed = 23;
  double of_rank[K] = {0}, most = 0;
  int count[K] = {0};
  for (int i = 0; i < N; i++) {
    key[i] = next_random(&seed) >> 1;
    gid[i] = i;
    weight[i] = key[i] < 1ULL << 62 ? 10 : 100;
  }
  ASSERT_OK(cut(K, N, &params, true, NULL, owner));
  for (int i = 0; i < N; i++) {
    count[owner[i]]++;
    of_rank[owner[i]] += weight[i];
    most = fmax(most, of_rank[owner[i]]);
  }
  assert_in_range(count[0], 1.24 * N / K, 1.25 * N / K);
  const double heavy_ranks = K - N / 2 / (1.25 * N / K); /* 9.6: the best there is */
  assert_true(most <= 1.03 * 100 * (N / 2) / heavy_ranks);
}

static void refused(void **state)
{
  (void)state;
  const ts_partition_params params = {0};
  uint64_t seed = 19;
  draw(&seed, 10, 1);
  assert_int_equal(cut(11, 10, &params, false, NULL, owner), TS_ERR_ARG);
  assert_string_equal(ts_error_message(),
                      "10 atoms on 11 ranks: expected at least one atom per rank");
  for (int i = 0; i < 10; i++)
    weight[i] = 1;
  weight[7] = NAN;
  assert_int_equal(cut(3, 10, &params, true, NULL, owner), TS_ERR_ARG);
  for (int i = 0; i < 10; i++)
    gid[i] = 4;
  assert_int_equal(cut(3, 10, &params, false, NULL, owner), TS_ERR_ARG);
  assert_string_equal(ts_error_message(), "two atoms have the id 5");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_number_of_ranks),   cmocka_unit_test(any_distribution),
      cmocka_unit_test(weights_within_capacity), cmocka_unit_test(weights_are_even),
      cmocka_unit_test(light_ranks_are_full),    cmocka_unit_test(refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
