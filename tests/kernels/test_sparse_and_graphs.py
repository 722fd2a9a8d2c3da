"""Sparse matrices, graphs and lists: irregular accesses and control flow."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from simt.gpu import Module
from support.products import product_bound

SOURCE = r"""
extern "C" __global__ void spmv_scalar(const int *begin, const int *column, const float *value,
                                       const float *x, float *y, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = begin[row]; i < begin[row + 1]; ++i) sum += value[i] * x[column[i]];
  y[row] = sum;
}

// A warp for each row.
extern "C" __global__ void spmv_vector(const int *begin, const int *column, const float *value,
                                       const float *x, float *y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = begin[row] + lane; i < begin[row + 1]; i += 32) sum += value[i] * __ldg(&x[column[i]]);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (lane == 0) y[row] = sum;
}

// ELLPACK: rows padded to one width, stored by columns; a column of -1 is padding.
extern "C" __global__ void spmv_ell(const int *column, const float *value, const float *x, float *y, int rows,
                                    int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int k = 0; k < width; ++k) {
    const int c = column[k * rows + row];
    if (c < 0) break;
    sum += value[k * rows + row] * x[c];
  }
  y[row] = sum;
}

// One level of breadth-first search from a queue of vertices to the next.
extern "C" __global__ void bfs_level(const int *begin, const int *edge, int *depth, const int *frontier,
                                     int size, int *next, int *next_size, int level) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= size) return;
  const int v = frontier[i];
  for (int e = begin[v]; e < begin[v + 1]; ++e)
    if (atomicCAS(&depth[edge[e]], -1, level) == -1) next[atomicAdd(next_size, 1)] = edge[e];
}

// PageRank: a vertex gathers from those that link to it.
extern "C" __global__ void pagerank(const int *begin, const int *source, const int *out_degree,
                                    const float *rank, float *next, int n, float damping) {
  const int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n) return;
  float sum = 0;
  for (int e = begin[v]; e < begin[v + 1]; ++e) sum += rank[source[e]] / out_degree[source[e]];
  next[v] = (1 - damping) / n + damping * sum;
}

// Connected components: every edge pulls both ends to the lesser label, until nothing changes.
extern "C" __global__ void components(const int *from, const int *to, int *label, int edges, int *changed) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  const int a = label[from[e]], b = label[to[e]];
  if (a == b) return;
  atomicMin(&label[a < b ? to[e] : from[e]], min(a, b));
  *changed = 1;
}

// Bellman and Ford: shortest paths by relaxation of all edges.
extern "C" __global__ void relax(const int *from, const int *to, const int *weight, int *distance,
                                 int edges) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  const int d = distance[from[e]];
  if (d < 1 << 30) atomicMin(&distance[to[e]], d + weight[e]);
}

// A list as pointers in device memory: each thread walks its own.
struct Node {
  Node *next;
  int value;
};
extern "C" __global__ void link(Node *nodes, const int *following, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) nodes[i] = {following[i] < 0 ? nullptr : nodes + following[i], i};
}
extern "C" __global__ void chase(const Node *nodes, const int *head, int *length, long long *sum, int lists) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= lists) return;
  int n = 0;
  long long s = 0;
  for (const Node *p = head[i] < 0 ? nullptr : &nodes[head[i]]; p; p = p->next) ++n, s += p->value;
  length[i] = n;
  sum[i] = s;
}

// An open hash table: insertion by compare-and-swap, then lookup.
extern "C" __global__ void insert(unsigned long long *table, int slots, const unsigned *key, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (unsigned s = key[i] * 2654435761u % slots;; s = (s + 1) % slots) {
    const unsigned long long found = atomicCAS(&table[s], ~0ull, (unsigned long long)key[i] << 32 | i);
    if (found == ~0ull || found >> 32 == key[i]) return;
  }
}
extern "C" __global__ void look_up(const unsigned long long *table, int slots, const unsigned *key,
                                   int *where, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  where[i] = -1;
  for (unsigned s = key[i] * 2654435761u % slots; table[s] != ~0ull; s = (s + 1) % slots)
    if (table[s] >> 32 == key[i]) {
      where[i] = (int)table[s];
      return;
    }
}
"""


def matrix(rng: np.random.Generator, rows: int, columns: int, density: float) -> sparse.csr_matrix:
    return sparse.random(rows, columns, density, format="csr", dtype=np.float32, rng=rng)


@pytest.mark.parametrize("shape", [(1, 5), (70, 40), (33, 200)])
@pytest.mark.parametrize("density", [0, 0.03, 0.4])
def test_sparse_matrix_times_vector(
    module: Module, rng: np.random.Generator, shape: tuple[int, int], density: float
) -> None:
    a = matrix(rng, *shape, density)
    x = rng.random(shape[1], np.float32)
    exact, bound = product_bound(a.toarray(), x[:, None], np.float32)
    rows = shape[0]
    width = int(np.diff(a.indptr).max())
    column, value = np.full((width, rows), -1, np.int32), np.zeros((width, rows), np.float32)
    for row in range(rows):
        entries = slice(a.indptr[row], a.indptr[row + 1])
        count = entries.stop - entries.start
        column[:count, row], value[:count, row] = a.indices[entries], a.data[entries]
    y = np.full((3, rows), np.nan, np.float32)
    module.spmv_scalar[-(-rows // 32), 32](a.indptr, a.indices, a.data, x, y[0], rows)
    module.spmv_vector[-(-rows // 4), 128](a.indptr, a.indices, a.data, x, y[1], rows)
    module.spmv_ell[-(-rows // 64), 64](column, value, x, y[2], rows, width)
    assert (np.abs(y - exact.T) <= bound.T).all()


def test_breadth_first_search(module: Module, rng: np.random.Generator) -> None:
    n = 300
    graph = matrix(rng, n, n, 0.006)
    gpu = module.gpu
    depth, begin, edge = (
        gpu.array(np.full(n, -1, np.int32)),
        gpu.array(graph.indptr),
        gpu.array(graph.indices),
    )
    queues = gpu.array(np.zeros(n, np.int32)), gpu.empty(n, np.int32)
    depth.view(np.int32, (1,)).set(0)
    size, level = 1, 0
    while size:
        level += 1
        count = np.zeros(1, np.int32)
        module.bfs_level[-(-size // 64), 64](begin, edge, depth, queues[0], size, queues[1], count, level)
        queues, size = queues[::-1], int(count[0])
    expected = csgraph.shortest_path(graph, unweighted=True, indices=0)
    assert (depth.numpy() == np.where(np.isinf(expected), -1, expected)).all()
    assert level > 3  # the graph is not trivial


def test_pagerank(module: Module, rng: np.random.Generator) -> None:
    n = 150
    links = matrix(rng, n, n, 0.05)  # row: target, column: source
    out_degree = np.maximum(1, np.bincount(links.indices, minlength=n)).astype(np.int32)
    rank, following = np.full(n, 1 / n, np.float32), np.zeros(n, np.float32)
    expected = rank.astype(np.float64)
    pattern = (links.toarray() != 0).astype(np.float64)
    for _ in range(5):
        module.pagerank[-(-n // 64), 64](links.indptr, links.indices, out_degree, rank, following, n, 0.85)
        rank, following = following, rank
        expected = 0.15 / n + 0.85 * pattern @ (expected / out_degree)
    np.testing.assert_allclose(rank, expected, rtol=1e-5)


def test_connected_components(module: Module, rng: np.random.Generator) -> None:
    n = 200
    graph = matrix(rng, n, n, 0.004).tocoo()
    label, changed = np.arange(n, dtype=np.int32), np.ones(1, np.int32)
    while changed[0]:
        changed[0] = 0
        module.components[-(-graph.nnz // 64), 64](graph.row, graph.col, label, graph.nnz, changed)
    count, expected = csgraph.connected_components(graph, directed=False)
    least = np.array([np.flatnonzero(expected == c)[0] for c in range(count)])
    assert (label == least[expected]).all()


def test_shortest_paths(module: Module, rng: np.random.Generator) -> None:
    n = 100
    graph = matrix(rng, n, n, 0.03).tocoo()
    weight = rng.integers(1, 100, graph.nnz).astype(np.int32)
    distance = np.full(n, 1 << 30, np.int32)
    distance[0] = 0
    for _ in range(n):
        before = distance.copy()
        module.relax[-(-graph.nnz // 64), 64](graph.row, graph.col, weight, distance, graph.nnz)
        if (before == distance).all():
            break
    weighted = sparse.coo_matrix((weight, (graph.row, graph.col)), (n, n))
    expected = csgraph.bellman_ford(weighted.tocsr(), indices=0)
    assert (distance == np.where(np.isinf(expected), 1 << 30, expected)).all()


@pytest.mark.parametrize("lists", [1, 40])
def test_pointers_are_chased(module: Module, rng: np.random.Generator, lists: int) -> None:
    n = 500
    order = rng.permutation(n).astype(np.int32)
    cuts = np.sort(rng.integers(0, n + 1, lists - 1))
    parts = np.split(order, cuts)
    following, head = np.full(n, -1, np.int32), np.full(lists, -1, np.int32)
    for k, part in enumerate(parts):
        if len(part):
            head[k] = part[0]
            following[part[:-1]] = part[1:]
    nodes = module.gpu.empty(16 * n, np.uint8)
    length, total = np.zeros(lists, np.int32), np.zeros(lists, np.int64)
    module.link[-(-n // 128), 128](nodes, following, n)
    module.chase[-(-lists // 32), 32](nodes, head, length, total, lists)
    assert length.tolist() == [len(part) for part in parts]
    assert total.tolist() == [int(part.sum()) for part in parts]


def test_hash_table(module: Module, rng: np.random.Generator) -> None:
    key = rng.choice(10_000, 300).astype(np.uint32)  # some twice
    table = np.full(401, 2**64 - 1, np.uint64)
    where, missing = np.zeros(300, np.int32), np.zeros(50, np.int32)
    module.insert[5, 64](table, 401, key, 300)
    module.look_up[5, 64](table, 401, key, where, 300)
    assert (where >= 0).all() and (key[where] == key).all()
    assert (table != 2**64 - 1).sum() == len(np.unique(key))
    module.look_up[1, 64](table, 401, np.arange(10_000, 10_050, dtype=np.uint32), missing, 50)
    assert (missing == -1).all()
