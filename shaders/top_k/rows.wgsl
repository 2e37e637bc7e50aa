//# The largest elements of each row in descending order, or with TURNED the smallest in ascending order, or their
//# INDICES: one element of the source per invocation, which counts those before it, in lines of WIDTH invocations. No
//# two have the same place: of equal ones the first comes first.
${constants}

${interface}
//% include "shared/key"

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn top_k_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let row: u32 = i / params.terms;
    let own: u32 = i % params.terms;
    let value = ${stored("src", "i")};
    let own_key: u32 = key(value) ^ TURNED;
    var place: u32 = 0u;
    for (var term: u32 = 0u; term < params.terms; term++) {
        let other: u32 = key(${stored("src", "row * params.terms + term")}) ^ TURNED;
        place = place + select(0u, 1u, other > own_key || (other == own_key && term < own));
    }
    if (place < params.chosen) {
        //% if INDICES
        ${store("dst", "row * params.chosen + place", "f32(own)")}
        //% else
        ${store("dst", "row * params.chosen + place", "value")}
        //% endif
    }
}
