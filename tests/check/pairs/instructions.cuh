// PTX as macros, so that what they become has the line of their use.
#pragma once

#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
#define GLOBAL(p) (__cvta_generic_to_global(p))
#define MEMORY : "memory"

#define BAR_SYNC(id, n) asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(n) MEMORY)
#define BAR_ARRIVE(id, n) asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(n) MEMORY)

// Order and scope are one text, such as "acquire.gpu".
#define LOAD(order, to, p) asm volatile("ld." order ".global.s32 %0, [%1];" : "=r"(to) : "l"(GLOBAL(p)) MEMORY)
#define STORE(order, p, value) asm volatile("st." order ".global.s32 [%0], %1;" ::"l"(GLOBAL(p)), "r"(value) MEMORY)

#define LOAD_SHARED4(to, p)                                                                           \
  asm volatile("ld.shared.v4.s32 {%0, %1, %2, %3}, [%4];"                                                  \
               : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "r"(SHARED(p)) MEMORY)
#define LOAD_GLOBAL4(to, p)                                                                           \
  asm volatile("ld.global.v4.s32 {%0, %1, %2, %3}, [%4];"                                                  \
               : "=r"(to.x), "=r"(to.y), "=r"(to.z), "=r"(to.w) : "l"(GLOBAL(p)) MEMORY)
#define LDMATRIX(to, row) \
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(to) : "r"(SHARED(row)) MEMORY)

#define COPY_ASYNC(to, from, bytes, valid)                                                                 \
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(SHARED(to)), "l"(GLOBAL(from)), "n"(bytes), \
               "r"(valid) MEMORY)
#define COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPY_WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) MEMORY)

#define MBARRIER_INIT(b, n) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SHARED(b)), "r"(n) MEMORY)
#define MBARRIER_ARRIVE(b) \
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(SHARED(b)) MEMORY)
#define MBARRIER_ARRIVE_MANY(b, n) \
  asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0], %1; }" ::"r"(SHARED(b)), "r"(n) MEMORY)
#define MBARRIER_EXPECT(b, bytes)                                                                           \
  asm volatile("{ .reg .b64 s; mbarrier.arrive.expect_tx.shared.b64 s, [%0], %1; }" ::"r"(SHARED(b)), "r"(bytes) \
               MEMORY)
#define MBARRIER_WAIT(b, parity)                                                              \
  asm volatile("{ .reg .pred p;\nWAIT: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"       \
               "@!p bra WAIT; }" ::"r"(SHARED(b)), "r"(parity) MEMORY)
// sm_80 has no try_wait.
#define MBARRIER_POLL(b, parity)                                                              \
  asm volatile("{ .reg .pred p;\nWAIT: mbarrier.test_wait.parity.shared.b64 p, [%0], %1;\n"      \
               "@!p bra WAIT; }" ::"r"(SHARED(b)), "r"(parity) MEMORY)
#define COPY_ARRIVE(b) asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(SHARED(b)) MEMORY)

#define BULK_LOAD(to, from, bytes, b)                                                                          \
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"( \
                   SHARED(to)),                                                                                 \
               "l"(GLOBAL(from)), "r"(bytes), "r"(SHARED(b)) MEMORY)
#define TENSOR_LOAD(to, map, x, y, b)                                                                     \
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], " \
               "[%4];" ::"r"(SHARED(to)), "l"(map), "r"(x), "r"(y), "r"(SHARED(b)) MEMORY)
#define BULK_STORE(to, from, bytes)                                                                         \
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(GLOBAL(to)), "r"(SHARED(from)), \
               "r"(bytes) MEMORY)
#define BULK_COMMIT() asm volatile("cp.async.bulk.commit_group;" ::: "memory")
#define BULK_WAIT_READ(n) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(n) MEMORY)
#define BULK_WAIT(n) asm volatile("cp.async.bulk.wait_group %0;" ::"n"(n) MEMORY)
#define FENCE_ASYNC() asm volatile("fence.proxy.async;" ::: "memory")

#define CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory")
#define CLUSTER_ARRIVE_RELAXED() asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory")
#define CLUSTER_WAIT() asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define CLUSTER_SYNC() \
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory")
#define CLUSTER_RANK(to) asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(to))
#define CLUSTER_PLACE(to, p, rank) \
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(SHARED(p)), "r"(rank))
#define CLUSTER_LOAD(to, place) \
  asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(to) : "r"(place) MEMORY)
#define CLUSTER_STORE(place, value) \
  asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(place), "r"(value) MEMORY)
#define CLUSTER_ADD(place, value) \
  asm volatile("red.relaxed.cluster.shared::cluster.add.s32 [%0], %1;" ::"r"(place), "r"(value) MEMORY)
#define CLUSTER_STORE_ASYNC(place, value, b)                                                                  \
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(place), "r"(value), \
               "r"(b) MEMORY)

#define WGMMA_FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define WGMMA_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
// The accumulators are operands, so that the compiler reads them after the wait.
#define WGMMA_WAIT(d) \
  asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory")
// 64 x 8 sums of 16 products of f16: the left matrix from registers, the right one from shared memory.
#define WGMMA(d, a, descriptor)                                                                         \
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, 1, 1, 1, 0;" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                              \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor) MEMORY)
