//# What `matrix_ptx` kernels say in PTX: a product of small matrices, and a value of the neighbouring lane.
#define MMA(c, a0, a1, a2, a3, b0, b1) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"(c.x), "+f"(c.y), "+f"(c.z), "+f"(c.w) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1))
#define EXCHANGE(to, from) asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, -1;" : "=f"(to) : "f"(from))
