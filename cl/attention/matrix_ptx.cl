//# softmax(scale Q K^T + bias) V of halves with f32 sums, by NVIDIA's `mma.sync` of 16x8x16: a warp of 32
//# invocations has TILE_Y times 16 queries of a head of keys, whose halves stay in its registers. A work-group
//# takes KEYS keys and values at a time, brought to local memory by `cp.async` while those before are multiplied;
//# rows there are an odd number of chunks of eight halves apart, so that `ldmatrix` finds eight in different
//# banks. The sums of a product of queries and keys lie in a lane as the next product wants its left operand:
//# shares never leave the registers. They are 1024 times themselves, which the sum of shares is as well: so a half
//# keeps a share down to 2^-24. Keys beyond the last are zeros without a share. Solo: WGSL has no inline assembly.
${constants}
//% include "shared/matrix_ptx_words"
#define LDMATRIX(r0, r1, r2, r3, at) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
#define LDMATRIX_T(r0, r1, r2, r3, at) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r0), "=r"(r1), "=r"(r2), "=r"(r3) : "r"(at) : "memory")
#define COPY(to, from, bytes) asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define NEIGHBOUR(to, from, distance) asm volatile("shfl.sync.bfly.b32 %0, %1, " #distance ", 31, -1;" : "=f"(to) : "f"(from))
#define POWER(to, x) asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(to) : "f"(x))
#define HALVES(to, low, high) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(to) : "f"(high), "f"(low))
//# The score `s`, a variable, of row `r` and key `key`: scaled, bounded, biased and masked.
//% macro scored(s, r, key)
    ${s} *= scale;
    //% if SOFTCAP
    ${s} = softcap * tanh(clamp(${s} / softcap, -10.0f, 10.0f));
    //% endif
    //% if BIAS
    ${s} += bias[bias${r} + bias_key * min(${key}, keys - 1u)];
    //% endif
    //% if MASK == 3
    ${s} += mask[mask${r} + mask_key * min(${key}, keys - 1u)];
    //% elif MASK
    ${s} = mask[mask${r} + mask_key * min(${key}, keys - 1u)] ${"==" if MASK == 1 else "!="} 0.0f ? fill : ${s};
    //% endif
    //% if BEHIND
    ${s} = (int)(${key}) > place${r} + behind ? none : ${s};
    //% endif
    //% if BEFORE
    ${s} = (int)(${key}) < place${r} - before ? none : ${s};
    //% endif
    ${s} = ${key} >= end ? none : ${s};
//% endmacro

__kernel __attribute__((reqd_work_group_size(WG_X, WG_Y, WG_Z)))
void attention_matrix_ptx(
    ${arguments}
) {
    __local uint4 staged[STAGED];
    const uint lid = get_local_id(0);
    const uint warp = lid / 32u;
    const uint lane = lid % 32u;
    const uint b = get_group_id(2) / heads;
    const uint h = get_group_id(2) % heads;
    const uint first_row = ROWS * get_group_id(0);
    const uint last_row = all_rows - 1u;
    const uint base = (uint)(size_t)staged;
    //% if BEGINS
    const int begin = clamp((int)begins[b * begins_batch], -536870912, 536870912);
    //% endif
    //% if ENDS
    const uint end = min((uint)max((int)ends[b * ends_batch], 0), keys);
    //% else
    const uint end = keys;
    //% endif
    //% set halves = 2 * tile[1]
    //% for r in range(halves)
    const uint row${r} = min(first_row + 16u * TILE_Y * warp + ${8 * r}u + lane / 4u, last_row);
    const uint member${r} = row${r} / rows;
    const uint own${r} = row${r} % rows;
    //% if BEHIND or BEFORE
    const int place${r} = begin + (int)own${r};
    //% endif
    //% if BIAS
    const uint bias${r} = bias_batch * b + bias_head * h + bias_group * member${r} + bias_row * own${r};
    //% endif
    //% if MASK
    const uint mask${r} = mask_batch * b + mask_head * h + mask_group * member${r} + mask_row * own${r};
    //% endif
    __global const uint* query${r} = (__global const uint*)query + 4u * (query_batch * b + query_head * h + query_group * member${r} + query_row * own${r} + query_first) + lane % 4u;
    //% for t in range(D16)
    const uint q${r}_${2 * t} = query${r}[${8 * t}u];
    const uint q${r}_${2 * t + 1} = ${"0u" if 2 * t + 1 >= D8 else "query" ~ r ~ "[" ~ (8 * t + 4) ~ "u]"};
    //% endfor
    float most${r} = -3.4028235e38f;
    float sum${r} = 0.0f;
    //% endfor
    //% for r in range(tile[1])
    //% for c in range(E8)
    float4 out${r}_${c} = (float4)(0.0f);
    //% endfor
    //% endfor
    //% if BEHIND
//# No query of the work-group attends a key from here on: its rows are of one head, or all of a head are among them.
    const int farthest = begin + (int)(all_rows == rows ? min(first_row + ROWS - 1u, last_row) : rows - 1u);
    const uint until = min(end, (uint)max(farthest + behind + 1, 0));
    //% else
    const uint until = end;
    //% endif
    __global const half* key_from = key + 8u * (key_batch * b + key_head * h + key_first);
    __global const half* value_from = value + 8u * (value_batch * b + value_head * h + value_first);
    //% macro fetch(first, stage)
    //% for what, chunks, whole, row, loads, from in [("key", D8, 2 * D16, "KEY_ROW", LOADS_K, 0), ("value", E8, 2 * E16, "VALUE_ROW", LOADS_V, 1)]
    //% for l in range(loads)
    //% if l + 1 == loads and loads * THREADS != KEYS * whole
    if (lid + ${l}u * THREADS < KEYS * ${whole}u) {
    //% else
    {
    //% endif
        const uint number = (lid + ${l}u * THREADS) / ${whole}u;
        const uint chunk = (lid + ${l}u * THREADS) % ${whole}u;
        const bool inside = ${first} + number < end${"" if chunks == whole else " && chunk < " ~ chunks ~ "u"};
        COPY(base + 16u * (${stage} + ${"KEYS * KEY_ROW + " if from else ""}${row} * number + chunk), ${what}_from + (inside ? 8u * (${what}_row * (${first} + number) + chunk) : 0u), inside ? 16u : 0u);
    }
    //% endfor
    //% endfor
    COMMIT();
    //% endmacro
    ${fetch("0u", "0u") | trim}
    const uint key_at = base + 16u * (KEY_ROW * (lane % 8u + 8u * (lane / 16u)) + lane / 8u % 2u);
    const uint value_at = base + 16u * (KEYS * KEY_ROW + VALUE_ROW * (lane % 16u) + lane / 16u);
    uint now = 0u;
    for (uint first = 0u; first < until; first += KEYS) {
        ${fetch("first + KEYS", "(STAGE - now)") | trim | indent(4)}
        asm volatile("cp.async.wait_group 1;" ::: "memory");
        ${barrier};
        //% for r in range(tile[1])
        //% for c in range(2 * tile[0])
        float4 s${r}_${c} = (float4)(0.0f);
        //% endfor
        //% endfor
        //% for t in range(D16)
        //% for c in range(tile[0])
        {
            uint k0, k1, k2, k3;
            LDMATRIX(k0, k1, k2, k3, key_at + 16u * (now + ${16 * c}u * KEY_ROW + ${2 * t}u));
            //% for r in range(tile[1])
            MMA(s${r}_${2 * c}, q${2 * r}_${2 * t}, q${2 * r + 1}_${2 * t}, q${2 * r}_${2 * t + 1}, q${2 * r + 1}_${2 * t + 1}, k0, k1);
            MMA(s${r}_${2 * c + 1}, q${2 * r}_${2 * t}, q${2 * r + 1}_${2 * t}, q${2 * r}_${2 * t + 1}, q${2 * r + 1}_${2 * t + 1}, k2, k3);
            //% endfor
        }
        //% endfor
        //% endfor
        //% for r in range(tile[1])
        //% for c in range(2 * tile[0])
        const uint key${r}_${c} = first + ${8 * c}u + lane % 4u * 2u;
        //% for lane in [0, 1, 2, 3]
        ${scored("s" ~ r ~ "_" ~ c ~ "." ~ ["x", "y", "z", "w"][lane], 2 * r + lane // 2, "(key" ~ r ~ "_" ~ c ~ (" + 1u)" if lane % 2 else ")")) | trim | indent(4)}
        //% endfor
        //% endfor
        //% for half in range(2)
        //% set row = 2 * r + half
        //% set lanes = ["z", "w"] if half else ["x", "y"]
        float new${row} = most${row};
        //% for c in range(2 * tile[0])
        new${row} = fmax(new${row}, fmax(s${r}_${c}.${lanes[0]}, s${r}_${c}.${lanes[1]}));
        //% endfor
        {
            float other;
            NEIGHBOUR(other, new${row}, 1);
            new${row} = fmax(new${row}, other);
            NEIGHBOUR(other, new${row}, 2);
            new${row} = fmax(new${row}, other);
        }
        float smaller${row};
        POWER(smaller${row}, (most${row} - new${row}) * 1.44269504f);
        most${row} = new${row};
        sum${row} *= smaller${row};
        //% for c in range(2 * tile[0])
        //% for lane in lanes
        POWER(s${r}_${c}.${lane}, (s${r}_${c}.${lane} - new${row}) * 1.44269504f + 10.0f);
        sum${row} += s${r}_${c}.${lane};
        //% endfor
        //% endfor
        //% endfor
        //% for c in range(E8)
        out${r}_${c} *= (float4)(smaller${2 * r}, smaller${2 * r}, smaller${2 * r + 1}, smaller${2 * r + 1});
        //% endfor
        //% for c in range(2 * tile[0])
        uint p${r}_${c}_0, p${r}_${c}_1;
        HALVES(p${r}_${c}_0, s${r}_${c}.x, s${r}_${c}.y);
        HALVES(p${r}_${c}_1, s${r}_${c}.z, s${r}_${c}.w);
        //% endfor
        //% endfor
        //% for k in range(tile[0])
        //% for c in range(E16)
        {
            uint v0, v1, v2, v3;
            LDMATRIX_T(v0, v1, v2, v3, value_at + 16u * (now + ${16 * k}u * VALUE_ROW + ${2 * c}u));
            //% for r in range(tile[1])
            MMA(out${r}_${2 * c}, p${r}_${2 * k}_0, p${r}_${2 * k}_1, p${r}_${2 * k + 1}_0, p${r}_${2 * k + 1}_1, v0, v1);
            //% if 2 * c + 1 < E8
            MMA(out${r}_${2 * c + 1}, p${r}_${2 * k}_0, p${r}_${2 * k}_1, p${r}_${2 * k + 1}_0, p${r}_${2 * k + 1}_1, v2, v3);
            //% endif
            //% endfor
        }
        //% endfor
        //% endfor
        ${barrier};
        now = STAGE - now;
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __global uint* to = (__global uint*)dst + lane % 4u;
    //% for row in range(halves)
    {
        float other;
        NEIGHBOUR(other, sum${row}, 1);
        sum${row} += other;
        NEIGHBOUR(other, sum${row}, 2);
        sum${row} += other;
    }
    if (first_row + 16u * TILE_Y * warp + ${8 * row}u + lane / 4u <= last_row) {
        __global uint* to${row} = to + 4u * (dst_batch * b + dst_head * h + dst_group * member${row} + dst_row * own${row} + dst_first);
        //% for c in range(E8)
        {
            //% set lanes = ["z", "w"] if row % 2 else ["x", "y"]
            uint pair;
            //% for lane in lanes
            const float ${lane} = out${row // 2}_${c}.${lane} / sum${row};
            //% endfor
            HALVES(pair, ${lanes[0]}, ${lanes[1]});
            //% if ZERO
            pair = sum${row} == 0.0f ? 0u : pair;
            //% endif
            to${row}[${4 * c}u] = pair;
        }
        //% endfor
    }
    //% endfor
}
