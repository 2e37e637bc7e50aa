//# y[i,j] = f(x[i,j], x[i,n+j]) of rows of 2n: one element per invocation, or four where LANES is 4. `columns` and
//# `elements` are counted in these.
${constants}

${interface}
//% set wide = LANES == 4
//% include "shared/functions"
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn glu_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    let at: u32 = i + i / params.columns * params.columns;
    //% if LANES == 4
    let x0: ${acc4} = ${load4("src", "at")};
    let x1: ${acc4} = ${load4("src", "at + params.columns")};
    //% else
    let x0: ${acc} = ${load("src", "at")};
    let x1: ${acc} = ${load("src", "at + params.columns")};
    //% endif
    //% for statement in statements
    ${statement}
    //% endfor
    //% if LANES == 4
    ${store4("dst", "i", "y")}
    //% else
    ${store("dst", "i", "y")}
    //% endif
}
