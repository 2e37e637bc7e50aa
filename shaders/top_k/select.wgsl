//# The largest elements of each row in descending order, or with TURNED the smallest in ascending order, or their
//# INDICES: one row per work-group of SIZE invocations, in lines of WIDTH work-groups. The key of the last one is found
//# digit by digit, from the counts of the digits that follow those known; what is larger is taken with as many of its
//# equals as are left, in their order, as indices; these are sorted by a network of comparisons, and at last become
//# elements.
${constants}

${interface}
var<workgroup> counts: array<atomic<u32>, 256>;
var<workgroup> larger: array<u32, SIZE>;
var<workgroup> equals: array<u32, SIZE>;

//% include "shared/key"
//# Whether the element at the second place comes before the one at the first.
fn is_later(first: u32, one: u32, other: u32) -> bool {
    let own: u32 = key(${stored("src", "first + one")}) ^ TURNED;
    let own_other: u32 = key(${stored("src", "first + other")}) ^ TURNED;
    return own_other > own || (own_other == own && other < one);
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn top_k_select(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let row: u32 = group.x + WIDTH * group.y;
    if (row >= params.rows) {
        return;
    }
    let first: u32 = row * params.terms;
    let out: u32 = row * params.chosen;
    var last: u32 = 0u;
    var left: u32 = params.chosen;
    //% for shift in [24, 16, 8, 0]
    for (var digit: u32 = lid.x; digit < 256u; digit += SIZE) {
        atomicStore(&counts[digit], 0u);
    }
    ${barrier};
    for (var term: u32 = lid.x; term < params.terms; term += SIZE) {
        let own: u32 = key(${stored("src", "first + term")}) ^ TURNED;
        //% if shift < 24
        if (own >> ${shift + 8}u == last >> ${shift + 8}u) {
            atomicAdd(&counts[(own >> ${shift}u) & 255u], 1u);
        }
        //% else
        atomicAdd(&counts[own >> 24u], 1u);
        //% endif
    }
    ${barrier};
    var above${shift}: u32 = 0u;
    var taken${shift}: u32 = 0u;
    for (var rest: u32 = 256u; rest > 0u; rest--) {
        let count: u32 = atomicLoad(&counts[rest - 1u]);
        if (above${shift} < left && left <= above${shift} + count) {
            last = last | ((rest - 1u) << ${shift}u);
            taken${shift} = above${shift};
        }
        above${shift} = above${shift} + count;
    }
    left = left - taken${shift};
    ${barrier};
    //% endfor
    let each: u32 = (params.terms + SIZE - 1u) / SIZE;
    let start: u32 = min(each * lid.x, params.terms);
    var larger_own: u32 = 0u;
    var equal_own: u32 = 0u;
    for (var term: u32 = start; term < min(params.terms, start + each); term++) {
        let own: u32 = key(${stored("src", "first + term")}) ^ TURNED;
        larger_own = larger_own + select(0u, 1u, own > last);
        equal_own = equal_own + select(0u, 1u, own == last);
    }
    larger[lid.x] = larger_own;
    equals[lid.x] = equal_own;
    ${barrier};
    var place: u32 = 0u;
    var equal: u32 = 0u;
    for (var before: u32 = 0u; before < lid.x; before++) {
        place = place + larger[before];
        equal = equal + equals[before];
    }
    place = place + min(equal, left);
    for (var term: u32 = start; term < min(params.terms, start + each); term++) {
        let own: u32 = key(${stored("src", "first + term")}) ^ TURNED;
        if (own > last || (own == last && equal < left)) {
            ${store("dst", "out + place", acc ~ "(term)")}
            place = place + 1u;
        }
        equal = equal + select(0u, 1u, own == last);
    }
    storageBarrier();
    for (var size: u32 = 2u; size < 2u * params.chosen; size = 2u * size) {
        for (var step: u32 = size / 2u; step > 0u; step = step / 2u) {
            //# The first comparison of a size is of mirrored places, so that all have the same direction.
            let block: u32 = 2u * step;
            for (var pair: u32 = lid.x; pair < min((params.chosen + block - 1u) / block * step, params.chosen); pair += SIZE) {
                let low: u32 = pair / step * block + pair % step;
                let high: u32 = select(low + step, pair / step * block + block - 1u - pair % step, block == size);
                if (high < params.chosen) {
                    let one: u32 = u32(${load("dst", "out + low")});
                    let other: u32 = u32(${load("dst", "out + high")});
                    if (is_later(first, one, other)) {
                        ${store("dst", "out + low", acc ~ "(other)")}
                        ${store("dst", "out + high", acc ~ "(one)")}
                    }
                }
            }
            storageBarrier();
        }
    }
    //% if not INDICES
    for (var i: u32 = lid.x; i < params.chosen; i += SIZE) {
        let term: u32 = u32(${load("dst", "out + i")});
        ${store("dst", "out + i", stored("src", "first + term"))}
    }
    //% endif
}
