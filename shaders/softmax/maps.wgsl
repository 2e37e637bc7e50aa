//# y[c] = exp(beta * (x[c] - m)) / sum_j exp(beta * (x[j] - m)), m the largest x: the channels of one pixel per
//# invocation. Lanes beyond the channels take no part.
${constants}

${interface}
fn inside(slice: u32) -> vec4<bool> {
    return 4u * slice + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(params.channels);
}

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn softmax_maps(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.width || gid.y >= params.height || gid.z >= params.batch) {
        return;
    }
    let plane: u32 = params.width * params.height;
    let first: u32 = gid.x + params.width * gid.y + plane * params.slices * gid.z;
    let begin: ${acc4} = ${load4("src", "first")};
    var best: ${acc4} = ${splat("begin.x")};
    for (var s: u32 = 0u; s < params.slices; s++) {
        best = max(best, select(best, ${load4("src", "first + plane * s")}, inside(s)));
    }
    let largest: ${acc4} = ${splat("max(max(best.x, best.y), max(best.z, best.w))")};
    let beta: ${acc4} = ${splat("params.beta")};
    var sums: ${acc4} = ${zero4};
    for (var s: u32 = 0u; s < params.slices; s++) {
        let power: ${acc4} = exp(beta * (${load4("src", "first + plane * s")} - largest));
        sums = sums + select(${zero4}, power, inside(s));
    }
    let sum: ${acc4} = ${splat("(sums.x + sums.y) + (sums.z + sums.w)")};
    for (var s: u32 = 0u; s < params.slices; s++) {
        let exponent: ${acc4} = beta * (${load4("src", "first + plane * s")} - largest);
        //% if LOG
        let result: ${acc4} = exponent - log(sum);
        //% else
        let result: ${acc4} = exp(exponent) / sum;
        //% endif
        ${store4("dst", "first + plane * s", "select(" ~ zero4 ~ ", result, inside(s))")}
    }
}
