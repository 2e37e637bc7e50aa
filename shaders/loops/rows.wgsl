//# Rows of a nest with reductions: LANES invocations compute a row together, ROWS rows a work-group; in lines of WIDTH
//# work-groups. What invocations of a row found lies APART slots from each other.
${constants}

${interface}
//% set wide = WIDE
//% include "shared/functions"
//% if LANES > 1
var<workgroup> partial: array<${"vec4<f32>" if WIDE else "i32" if WORD == 1 else "u32" if WORD == 2 else "f32"}, 2 * SLOTS>;

//% endif
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn ${entry}(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    //% if ORDER == 2
    let lane: u32 = lid.y;
    let own_row: u32 = lid.x;
    //% else
    let lane: u32 = lid.x;
    let own_row: u32 = lid.y;
    //% endif
    let first: u32 = own_row + ROWS * (group.x + WIDTH * group.y);
    //% if LANES > 1
    let slot: u32 = ${"lid.x + ROWS * lid.y" if ORDER == 2 else "lid.x + LANES * lid.y"};
    //% endif
    //% for statement in statements
    ${statement}
    //% endfor
}
