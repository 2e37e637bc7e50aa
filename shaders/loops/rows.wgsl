//# Rows of a nest with reductions: LANES invocations compute a row together, ROWS rows a work-group; in lines of WIDTH
//# work-groups. What invocations of a row found lies APART slots from each other, with places where it is the largest or
//# the smallest that is found there.
${constants}

${interface}
//% set wide = WIDE
//% include "shared/functions"
//% include "shared/searches"
//% if LANES > 1
var<workgroup> partial: array<${element}, 2 * SLOTS>;
//% if "larger" in calls or "smaller" in calls
var<workgroup> places: array<${floats}, 2 * SLOTS>;
//% endif

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
