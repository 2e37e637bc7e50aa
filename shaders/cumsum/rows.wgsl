//# y[o, i, n] = the sum of x[o, j, n] up to i, from the end if REVERSE, without i if EXCLUSIVE: all sums of one o
//# and n per invocation, in lines of WIDTH invocations.
${constants}

${interface}
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn cumsum_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let row: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || row >= params.rows) {
        return;
    }
    let first: u32 = row / params.inner * params.terms * params.inner + row % params.inner;
    var sum: ${acc} = ${zero};
    for (var term: u32 = 0u; term < params.terms; term++) {
        let i: u32 = first + params.inner * ${"(params.terms - 1u - term)" if REVERSE else "term"};
        //% if EXCLUSIVE
        let before: ${acc} = sum;
        sum = sum + ${load("src", "i")};
        ${store("dst", "i", "before")}
        //% else
        sum = sum + ${load("src", "i")};
        ${store("dst", "i", "sum")}
        //% endif
    }
}
