//# y = f(sum_c w[o,c] m[c] + b[o]), m[c] the mean of a map's channel: an image per work-group of SIZE invocations. LANES
//# of them make the mean of a slice. The lanes beyond the channels have means that no weight is multiplied with.
${constants}

${interface}
var<workgroup> partial: array<${acc4}, SIZE>;
var<workgroup> means: array<${acc}, MEANS>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn squeeze_group(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let n: u32 = group.y;
    for (var base: u32 = 0u; base < params.slices; base += SIZE / LANES) {
        let slice: u32 = base + lid.x / LANES;
        var part: ${acc4} = ${zero4};
        if (slice < params.slices) {
            let first: u32 = (n * params.slices + slice) * params.plane;
            for (var i: u32 = lid.x % LANES; i < params.plane; i += LANES) {
                part = part + ${load4("src", "first + i")};
            }
        }
        partial[lid.x] = part;
        //% set shares = LANES
        //% include "shared/share_sum"
        if (lid.x % LANES == 0u && slice < params.slices) {
            let mean: ${acc4} = partial[lid.x] / ${splat(acc ~ "(params.plane)")};
            //% for lane in ["x", "y", "z", "w"]
            means[4u * slice + ${loop.index0}u] = mean.${lane};
            //% endfor
        }
        ${barrier};
    }
    //% set values = "means"
    //% set inputs = "params.inputs"
    //% include "shared/pixel_product"
}
