//# y = f(sum_k w[o,k] m[k] + b[o]) of image or line `n`, whose m, `inputs` of them, lie in `values`: SHARES invocations for
//# each four outputs. There must be a barrier behind what writes `values`.
    for (var base: u32 = 0u; base < params.rows; base += SIZE / SHARES) {
        let row: u32 = base + lid.x / SHARES;
        //% set lines = 1
        //% set rows = "params.rows"
        //% set word = "SHARES"
        //% set unroll = UNROLL
        //% set matrix = "weights"
        //% include "shared/row_sums"
        partial[lid.x] = sum0;
        //% set shares = SHARES
        //% include "shared/share_sum"
        if (lid.x % SHARES == 0u && row < params.rows) {
            var value: ${acc4} = partial[lid.x];
            //% if ROWS
            //% include "shared/row_stored"
            //% else
            //% for line in epilogue("value", "row", "0u")
            ${line}
            //% endfor
            ${store4("dst", "n * params.rows + row", "value")}
            //% endif
        }
        ${barrier};
    }
