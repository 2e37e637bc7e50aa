//# y = f(sum_r w[o,r] g(sum_k v[r,k] p[k] + d[r]) + b[o]), p a row or a normalised one: a row per work-group of SIZE
//# invocations. HIDDEN_SHARES of them form four sums g(..), SHARES four outputs.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;
var<workgroup> values: array<${acc}, LINE>;
var<workgroup> hidden: array<${acc}, HIDDEN>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn mlp_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n: u32 = group.y;
    //% set first = "0u"
    //% include "shared/row_normalized"
    for (var base: u32 = 0u; base < params.hidden_rows; base += SIZE / HIDDEN_SHARES) {
        let row: u32 = base + lid.x / HIDDEN_SHARES;
        //% set lines = 1
        //% set rows = "params.hidden_rows"
        //% set word = "HIDDEN_SHARES"
        //% set unroll = HIDDEN_UNROLL
        //% set inputs = "params.inputs"
        //% set matrix = "window"
        //% set values = "values"
        //% include "shared/row_sums"
        partial[lid.x] = sum0;
        //% set shares = HIDDEN_SHARES
        //% include "shared/share_sum"
        if (lid.x % HIDDEN_SHARES == 0u && row < params.hidden_rows) {
            var value: ${acc4} = partial[lid.x];
            //% for line in between("value", "row")
            ${line}
            //% endfor
            //% for lane in ["x", "y", "z", "w"]
            hidden[4u * row + ${loop.index0}u] = value.${lane};
            //% endfor
        }
        ${barrier};
    }
    //% set values = "hidden"
    //% set inputs = "params.hidden"
    //% include "shared/pixel_product"
}
