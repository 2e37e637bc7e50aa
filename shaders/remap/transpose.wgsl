//# y[n, i, j] = x[first + apart * n + i + pitch * j]: a work-group moves a tile of SIDE by SIDE elements, LINES of
//# its lines at once, by way of local memory, whose lines are one element longer so that its columns lie in
//# different banks. What lies beyond the edges is neither read nor written.
${constants}

${interface}
var<workgroup> staged: array<${acc}, SIDE * (SIDE + 1u)>;

@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn remap_transpose(@builtin(local_invocation_id) lid: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let src_row: u32 = SIDE * group.y + lid.x;
    let dst_column: u32 = SIDE * group.x + lid.x;
    let src_first: u32 = params.first + params.apart * group.z + src_row;
    let dst_first: u32 = params.rows * params.columns * group.z + dst_column;
    //% for step in range(SIDE // LINES)
    let src_line${step}: u32 = lid.y + ${step}u * LINES;
    let src_column${step}: u32 = SIDE * group.x + src_line${step};
    if (src_row < params.rows && src_column${step} < params.columns) {
        staged[(SIDE + 1u) * src_line${step} + lid.x] = ${load("src", "src_first + params.pitch * src_column" ~ step)};
    }
    //% endfor
    ${barrier};
    //% for step in range(SIDE // LINES)
    let dst_line${step}: u32 = lid.y + ${step}u * LINES;
    let dst_row${step}: u32 = SIDE * group.y + dst_line${step};
    if (dst_row${step} < params.rows && dst_column < params.columns) {
        ${store("dst", "dst_first + params.columns * dst_row" ~ step, "staged[(SIDE + 1u) * lid.x + dst_line" ~ step ~ "]")}
    }
    //% endfor
}
