//# y = f(sum_k w[o,k] p[k] + b[o]), p a normalised row: a work-group of SIZE invocations normalises tile[1] rows, and forms
//# the outputs of SIZE / SHARES slices of each of them. Rows beyond the last are the last one, and not stored.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;
var<workgroup> values: array<${acc}, ${tile[1]}u * LINE>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn mlp_rows(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    //% for r in range(tile[1])
    {
        let n: u32 = min(${tile[1]}u * group.y + ${r}u, params.lines - 1u);
        //% set first = r ~ "u * LINE"
        //% include "shared/row_normalized"
    }
    //% endfor
    {
        let row: u32 = group.x * (SIZE / SHARES) + lid.x / SHARES;
        //% set lines = tile[1]
        //% set rows = "params.rows"
        //% set word = "SHARES"
        //% set unroll = UNROLL
        //% set inputs = "params.inputs"
        //% set matrix = "weights"
        //% set values = "values"
        //% include "shared/row_sums"
        //% for r in range(tile[1])
        partial[lid.x] = sum${r};
        //% set shares = SHARES
        //% include "shared/share_sum"
        if (lid.x % SHARES == 0u && row < params.rows && ${tile[1]}u * group.y + ${r}u < params.lines) {
            let n: u32 = ${tile[1]}u * group.y + ${r}u;
            var value: ${acc4} = partial[lid.x];
            //% include "shared/row_stored"
        }
        ${barrier};
        //% endfor
    }
}
