//! A telephone camera's frames to the keypoints of PoseNet: a library that an application for Android loads.
//!
//!     scripts/android NDK [RELEASE|check]
//!
//! `java/org/diptych/Poses.java` is what the application calls. A frame is a `HardwareBuffer`, which the GPU reads where it
//! lies, or bytes that are uploaded. `docs/book/src/android.md` says which steps were tried.
//!
//! | module | what |
//! |---|---|
//! | `java` | the functions that `Poses.java` declares |
//! | `poses` | the network: from a texture to keypoints |
//! | `frames` | hardware buffers as textures of wgpu |
#![cfg(target_os = "android")]

mod frames;
mod java;
#[path = "../../camera/pose.rs"]
#[expect(dead_code, reason = "the example `camera` draws, and judges what it drew")]
mod pose;
mod poses;
