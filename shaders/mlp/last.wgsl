//# y = f(sum_r w[o,r] g(sum_k v[r,k] p[k] + d[r]) + b[o]), p a row or a normalised one: a work-group of SIZE invocations
//# forms four sums g(..), and the last one of a row to arrive forms the outputs.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;
var<workgroup> values: array<${acc}, LINE>;
var<workgroup> hidden: array<${acc}, HIDDEN>;
var<workgroup> before: u32;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn mlp_last(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n: u32 = group.y;
    let row: u32 = group.x;
    //% set first = "0u"
    //% include "shared/row_normalized"
    //% set lines = 1
    //% set rows = "params.hidden_rows"
    //% set word = "SIZE"
    //% set unroll = HIDDEN_UNROLL
    //% set inputs = "params.inputs"
    //% set matrix = "window"
    //% set values = "values"
    //% include "shared/row_sums"
    partial[lid.x] = sum0;
    //% set shares = SIZE
    //% include "shared/share_sum"
    var mine: ${acc4} = partial[lid.x];
    //% for line in between("mine", "row")
    ${line}
    //% endfor
    let reduction: u32 = n;
    let groups: u32 = params.hidden_rows;
    let own: u32 = row;
    //% set told = "hidden"
    //% include "shared/arrival"
    //% set values = "hidden"
    //% set inputs = "params.hidden"
    //% include "shared/pixel_product"
}
