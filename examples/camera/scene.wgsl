struct Scene {
    // What the camera sees: the middle, and the steps to the next pixel along x and y.
    middle: vec2<f32>,
    across: vec2<f32>,
    down: vec2<f32>,
    size: vec2<f32>,
    // From the network's pixels to the camera's: factors of x and y, and what is added.
    to_x: vec4<f32>,
    to_y: vec4<f32>,
}

@group(0) @binding(0) var<uniform> scene: Scene;
@group(0) @binding(1) var picture: texture_2d<f32>;
@group(0) @binding(2) var linear: sampler;
@group(0) @binding(3) var<storage, read> keypoints: array<vec4<f32>>;
@group(0) @binding(4) var<storage, read> limbs: array<vec2<u32>>;

@vertex
fn everywhere(@builtin(vertex_index) index: u32) -> @builtin(position) vec4<f32> {
    let corner = vec2<f32>(f32(index & 1u), f32(index >> 1u));
    return vec4<f32>(4.0 * corner - 1.0, 0.0, 1.0);
}

// What the camera sees, moving.
@fragment
fn seen(@builtin(position) place: vec4<f32>) -> @location(0) vec4<f32> {
    let from_middle = place.xy - 0.5 * scene.size;
    let at = scene.middle + scene.across * from_middle.x + scene.down * from_middle.y;
    return textureSampleLevel(picture, linear, at / vec2<f32>(textureDimensions(picture)), 0.0);
}

// The camera's picture as it is.
@fragment
fn shown(@builtin(position) place: vec4<f32>) -> @location(0) vec4<f32> {
    return textureLoad(picture, vec2<u32>(place.xy), 0);
}

fn on_screen(keypoint: vec4<f32>) -> vec2<f32> {
    let network = vec4<f32>(keypoint.xy, 1.0, 0.0);
    return vec2<f32>(dot(scene.to_x, network), dot(scene.to_y, network));
}

struct Stroke {
    @builtin(position) place: vec4<f32>,
    @location(0) colour: vec4<f32>,
}

// A bar for each limb, a square for each keypoint; nothing where the network is not sure.
@vertex
fn stroke(@builtin(vertex_index) corner: u32, @builtin(instance_index) index: u32) -> Stroke {
    let limb_count = arrayLength(&limbs);
    var first = keypoints[0];
    var second = first;
    var colour = vec4<f32>(1.0, 0.85, 0.1, 1.0);
    var thickness = 2.5;
    if (index < limb_count) {
        let limb = limbs[index];
        first = keypoints[limb.x];
        second = keypoints[limb.y];
        let is_left = (limb.x & 1u) == 1u && (limb.y & 1u) == 1u;
        colour = select(vec4<f32>(0.1, 0.9, 1.0, 1.0), vec4<f32>(1.0, 0.35, 0.2, 1.0), is_left);
    } else {
        first = keypoints[index - limb_count];
        second = first;
        thickness = 4.5;
    }
    var along = on_screen(second) - on_screen(first);
    let length_of = length(along);
    along = select(vec2<f32>(1.0, 0.0), along / max(length_of, 1e-6), length_of > 1e-6);
    let aside = vec2<f32>(-along.y, along.x);
    let end = select(on_screen(first) - thickness * along, on_screen(second) + thickness * along, (corner & 1u) == 1u);
    let side = select(-thickness, thickness, (corner & 2u) == 2u);
    let sure = min(first.z, second.z) > 0.3;
    let pixel = select(vec2<f32>(-100.0), end + side * aside, sure);
    let unit = pixel / scene.size * vec2<f32>(2.0, -2.0) + vec2<f32>(-1.0, 1.0);
    return Stroke(vec4<f32>(unit, 0.0, 1.0), colour);
}

@fragment
fn inked(stroke: Stroke) -> @location(0) vec4<f32> {
    return stroke.colour;
}
