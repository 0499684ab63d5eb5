/* SPDX-License-Identifier: MIT
 *
 * Receivers against a halo: 900 random cells of nine kinds are cut into shards of no order, each of
 * which sees all other atoms as its halo, shuffled.  The rows of all shards together are the edges
 * of the whole, in its order, with both back ends; and halos shrink to what edges use. */
#include "tests/neighbor_cases.h"

#include "neighbor/geometry.h"

/* One shard: the atoms that it owns, then all others. */
typedef struct part {
  ts_lidx n, total;
  ts_lidx whole[CASE_MAX_ATOMS]; /* index in the case */
  double x[CASE_MAX_ATOMS][3];
  ts_gidx gid[CASE_MAX_ATOMS];
  int32_t image[CASE_MAX_ATOMS][3];
} part;

static void add(part *p, const search_case *c, ts_lidx i)
{
  p->whole[p->total] = i;
  p->gid[p->total] = c->gid[i];
  memcpy(p->x[p->total], c->x[i], sizeof c->x[i]);
  memcpy(p->image[p->total++], c->image[i], sizeof c->image[i]);
}

static void make_part(part *p, const search_case *c, const int *owner, int rank, uint64_t *seed)
{
  *p = (part){0};
  for (ts_lidx i = 0; i < c->n; i++)
    if (owner[i] == rank) add(p, c, i);
  p->n = p->total;
  const ts_lidx start = below(seed, c->n);
  for (ts_lidx k = 0; k < c->n; k++) /* a rotation: in no order of ids */
    if (owner[(start + k) % c->n] != rank) add(p, c, (start + k) % c->n);
}

/* The rows of a part are rows of the whole. */
static int64_t check_rows(const ts_edges *e, const part *p, const brute_list *list)
{
  int64_t k = 0;
  for (ts_lidx i = 0; i < p->n; i++) {
    int64_t b = 0;
    while (b < list->count && list->edge[b].i != p->whole[i])
      b++;
    for (; b < list->count && list->edge[b].i == p->whole[i]; b++, k++) {
      const brute_edge *want = &list->edge[b];
      assert_true(k < e->row[i + 1]);
      const int16_t *s = e->shift_image[e->shift[k]];
      assert_int_equal(e->receiver[k], i);
      assert_int_equal(p->whole[e->sender[k]], want->j);
      assert_true(s[0] == want->image[0] && s[1] == want->image[1] && s[2] == want->image[2]);
    }
    assert_int_equal(k, e->row[i + 1]);
  }
  return k;
}

/* Drop what no edge names and leave gaps: the same edges under new numbers. */
static void check_shrinking(ts_edges *e, const part *p, uint64_t *seed)
{
  bool used[CASE_MAX_ATOMS] = {false};
  ts_lidx to[CASE_MAX_ATOMS], next = p->n, before[CASE_MAX_ATOMS];
  ts_gidx gid[2 * CASE_MAX_ATOMS];
  memset(gid, -1, sizeof gid);
  ts_edges_used(e, used);
  for (ts_lidx j = 0; j < p->total; j++) {
    bool named = false;
    for (int64_t k = 0; k < e->count; k++)
      named |= e->sender[k] == j;
    assert_int_equal(used[j], named);
    to[j] = j < p->n ? j : named ? (next += below(seed, 2)) : -1;
    if (to[j] >= p->n) next++;
    if (to[j] >= 0) gid[to[j]] = p->gid[j];
  }
  ts_lidx *const sender = malloc(((size_t)e->count + 1) * sizeof *sender);
  memcpy(sender, e->sender, (size_t)e->count * sizeof *sender);
  memcpy(before, to, sizeof to);
  for (ts_lidx j = p->n; j < p->total; j++) /* an edge must not lose its sender */
    if (used[j]) {
      to[j] = -1;
      assert_int_equal(ts_edges_renumber(e, to, next), TS_ERR_ARG);
      to[j] = next;
      assert_int_equal(ts_edges_renumber(e, to, next), TS_ERR_ARG);
      break;
    }
  assert_memory_equal(sender, e->sender, (size_t)e->count * sizeof *sender);
  ASSERT_OK(ts_edges_renumber(e, before, next));
  assert_int_equal(e->nsenders, next);
  for (int64_t k = 0; k < e->count; k++)
    assert_int_equal(e->sender[k], before[sender[k]]);
  if (!ts_edges_is_valid(e, gid, true)) fail_msg("renumbered: %s", ts_error_message());
  free(sender);
}

static void check_case(search_case *c, const char *what, uint64_t *seed)
{
  static part p;
  int owner[CASE_MAX_ATOMS];
  const int ranks = 1 + below(seed, 5);
  const ts_search_params *params = &c->params;
  brute_list list = brute_edges(&c->cell, c->n, c->x, c->gid, fmax(0, params->lower - params->skin),
                                params->cutoff + params->skin);
  uint64_t hash = 0;
  int64_t count = 0;
  for (ts_lidx i = 0; i < c->n; i++)
    owner[i] = below(seed, ranks);
  for (int r = 0; r < ranks; r++) {
    ts_edges *e = NULL, *again = NULL;
    make_part(&p, c, owner, r, seed);
    c->params.backend = TS_SEARCH_CELLS;
    ASSERT_OK(ts_edges_build(&c->cell, p.n, p.total - p.n, p.x, p.gid, params, &e));
    if (!ts_edges_is_valid(e, p.gid, true)) fail_msg("%s: %s", what, ts_error_message());
    count += check_rows(e, &p, &list);
    hash += ts_edges_hash(e, NULL, p.gid, p.image);
    c->params.backend = TS_SEARCH_FAISS;
    ASSERT_OK(ts_edges_build(&c->cell, p.n, p.total - p.n, p.x, p.gid, params, &again));
    assert_edges_equal(e, again);
    check_shrinking(e, &p, seed);
    ts_edges_destroy(&e);
    ts_edges_destroy(&again);
  }
  assert_int_equal(count, list.count);
  ts_edges *whole = NULL;
  ASSERT_OK(ts_edges_build(&c->cell, c->n, 0, c->x, c->gid, params, &whole));
  assert_true(hash == ts_edges_hash(whole, NULL, c->gid, c->image));
  ts_edges_destroy(&whole);
  free(list.edge);
}

static void shards_find_the_whole(void **state)
{
  (void)state;
  static search_case c;
  uint64_t seed = 4242;
  for (int n = 0; n < 100 * CASE_KINDS; n++) {
    char what[64];
    const int kind = n % CASE_KINDS;
    snprintf(what, sizeof what, "%s case %d", case_name[kind], n);
    case_make(&c, kind, &seed);
    check_case(&c, what, &seed);
  }
}

/* Senders of the halo that do not send, and sizes that are refused. */
static void excluded_and_refused(void **state)
{
  (void)state;
  const double x[4][3] = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const ts_gidx gid[4] = {7, 3, 9, 1};
  const bool excluded[4] = {false, false, true, false};
  ts_cell cell;
  ts_search_params params;
  ts_edges *e = NULL;
  ASSERT_OK(ts_cell_init(&cell, NULL, NULL));
  ts_search_params_init(&params);
  params.cutoff = 1.2;
  params.excluded_sender = excluded;
  ASSERT_OK(ts_edges_build(&cell, 1, 3, x, gid, &params, &e));
  assert_true(ts_edges_is_valid(e, gid, false));
  assert_int_equal(e->count, 2);
  assert_int_equal(e->sender[0], 3); /* id 1 before id 3 */
  assert_int_equal(e->sender[1], 1);
  assert_int_equal(e->column[4], 2);
  ts_edges_destroy(&e);
  ASSERT_OK(ts_edges_build(&cell, 0, 4, x, gid, &params, &e));
  assert_int_equal(e->count, 0);
  assert_int_equal(e->nsenders, 4);
  assert_true(ts_edges_is_valid(e, gid, true));
  ts_edges_destroy(&e);
  assert_int_equal(ts_edges_build(&cell, 1, -1, x, gid, &params, &e), TS_ERR_ARG);
  assert_int_equal(ts_edges_build(&cell, 4, INT32_MAX - 3, x, gid, &params, &e), TS_ERR_ARG);
  assert_null(e);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(shards_find_the_whole),
                                     cmocka_unit_test(excluded_and_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
