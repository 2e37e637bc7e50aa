//# y = f(x0, x1, ...) of rows: the output's axes, from the innermost one on, and each input's steps along them,
//# 0 where it has one element for all. If WIDE, four elements of the innermost axis per invocation, of which an
//# input whose bit is set in SPLAT has one for all; otherwise one. In lines of WIDTH invocations.
${constants}

${interface}
//% set wide = WIDE
//% include "shared/functions"
@compute @workgroup_size(WG_X, WG_Y, WG_Z)
fn elementwise_rows(@builtin(global_invocation_id) gid: vec3<u32>) {
    let i: u32 = gid.x + WIDTH * gid.y;
    if (gid.x >= WIDTH || i >= params.elements) {
        return;
    }
    //% include "shared/row_places"
    //% for input in range(INPUTS)
    //% set splat_it = (SPLAT // 2 ** input) % 2
    //% if not WIDE
    let x${input}: ${acc} = ${load("arg" ~ input, "at" ~ input)};
    //% elif splat_it
    let x${input}: ${acc4} = ${splat(load("arg" ~ input, "at" ~ input))};
    //% else
    let x${input}: ${acc4} = ${load4("arg" ~ input, "at" ~ input)};
    //% endif
    //% endfor
    //% for statement in statements
    ${statement}
    //% endfor
    //% if WIDE
    ${store4("dst", "i", "y")}
    //% else
    ${store("dst", "i", "y")}
    //% endif
}
