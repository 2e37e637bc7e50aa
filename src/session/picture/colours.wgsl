let a: vec4<f32> = colour_at(x0, y0);
    let b: vec4<f32> = colour_at(x1, y0);
    let c: vec4<f32> = colour_at(x0, y1);
    let d: vec4<f32> = colour_at(x1, y1);
    let above: vec4<f32> = a + (b - a) * fx;
    let below: vec4<f32> = c + (d - c) * fx;
    var p: vec4<f32> = above + (below - above) * fy;
