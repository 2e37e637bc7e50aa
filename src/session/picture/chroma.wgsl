// Chroma samples are for two columns, and lie where the siting says.
    let chroma_width: u32 = (params.source_width + 1u) / 2u;
    let chroma_height: u32 = CHROMA_HEIGHT;
    let chroma_s: f32 = u * 0.5 - SHIFT_X;
    let chroma_t: f32 = CHROMA_T;
    let cx0: u32 = before(chroma_s, chroma_width);
    let cy0: u32 = before(chroma_t, chroma_height);
    let cx1: u32 = min(cx0 + 1u, chroma_width - 1u);
    let cy1: u32 = min(cy0 + 1u, chroma_height - 1u);
    let ca: vec2<f32> = chroma_at(cx0, cy0);
    let cb: vec2<f32> = chroma_at(cx1, cy0);
    let cc: vec2<f32> = chroma_at(cx0, cy1);
    let cd: vec2<f32> = chroma_at(cx1, cy1);
    let chroma_above: vec2<f32> = ca + (cb - ca) * part(chroma_s, chroma_width);
    let chroma_below: vec2<f32> = cc + (cd - cc) * part(chroma_s, chroma_width);
    let chroma: vec2<f32> = chroma_above + (chroma_below - chroma_above) * part(chroma_t, chroma_height);
