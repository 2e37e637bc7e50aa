let a: f32 = luma_at(x0, y0);
    let b: f32 = luma_at(x1, y0);
    let c: f32 = luma_at(x0, y1);
    let d: f32 = luma_at(x1, y1);
    let above: f32 = a + (b - a) * fx;
    let below: f32 = c + (d - c) * fx;
    let luma: f32 = above + (below - above) * fy;
    CHROMA
    let red: f32 = params.r_y * luma + params.r_cb * chroma.x + params.r_cr * chroma.y + params.r_one;
    let green: f32 = params.g_y * luma + params.g_cb * chroma.x + params.g_cr * chroma.y + params.g_one;
    let blue: f32 = params.b_y * luma + params.b_cb * chroma.x + params.b_cr * chroma.y + params.b_one;
    var p: vec4<f32> = vec4<f32>(clamp(vec3<f32>(red, green, blue), vec3<f32>(0.0), vec3<f32>(1.0)), 1.0);
