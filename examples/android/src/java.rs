//! The functions that `org.diptych.Poses` declares.

use crate::frames::Frame;
use crate::poses::Poses;
use anyhow::Context as _;
use jni::EnvUnowned;
use jni::errors::ThrowRuntimeExAndDefault;
use jni::objects::{JByteBuffer, JClass, JFloatArray, JObject, JString};
use jni::sys::{jint, jlong};
use ndk::hardware_buffer::HardwareBuffer;
use std::path::PathBuf;
use std::sync::Mutex;

/// What a Java exception says.
#[derive(Debug)]
struct Failure(anyhow::Error);

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:#}", self.0)
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Failure(error)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Failure(error.into())
    }
}

/// What a handle points to: Java's threads may call at the same time.
type Shared = Mutex<Poses>;

/// The session of a handle.
///
/// # Safety
/// The handle is 0 or comes from `open`, and was not closed: `Poses.java` sees to it.
unsafe fn shared<'a>(handle: jlong) -> anyhow::Result<&'a Shared> {
    // SAFETY: the caller promises that the handle is 0 or of `open` and not closed; `as_ref` checks for 0.
    unsafe { (handle as *const Shared).as_ref() }.context("the session is closed")
}

/// Opens the GPU and prepares the network; compiled kernels are kept in `cache`.
#[unsafe(no_mangle)]
extern "system" fn Java_org_diptych_Poses_open<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    cache: JString<'a>,
) -> jlong {
    let opened = env.with_env(|_| -> Result<_, Failure> {
        let poses = Poses::new(PathBuf::from(cache.to_string()))?;
        Ok(Box::into_raw(Box::new(Shared::new(poses))) as jlong)
    });
    opened.resolve::<ThrowRuntimeExAndDefault>()
}

/// Frees what `open` made.
#[unsafe(no_mangle)]
extern "system" fn Java_org_diptych_Poses_free<'a>(_: EnvUnowned<'a>, _: JClass<'a>, handle: jlong) {
    if handle != 0 {
        // SAFETY: `Poses.java` hands each handle back once, when no call is under way.
        drop(unsafe { Box::from_raw(handle as *mut Shared) });
    }
}

/// The device, and what it lacks for hardware buffers.
#[unsafe(no_mangle)]
extern "system" fn Java_org_diptych_Poses_info<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
) -> JString<'a> {
    let info = env.with_env(|env| -> Result<_, Failure> {
        // SAFETY: the handle is one of `open`.
        let info = locked(unsafe { shared(handle) }?)?.info();
        Ok(JString::from_str(env, info)?)
    });
    info.resolve::<ThrowRuntimeExAndDefault>()
}

/// Keypoints of a hardware buffer: x, y and score of each part.
#[unsafe(no_mangle)]
extern "system" fn Java_org_diptych_Poses_findInBuffer<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    buffer: JObject<'a>,
    degrees: jint,
) -> JFloatArray<'a> {
    let found = env.with_env(|env| -> Result<_, Failure> {
        if buffer.as_raw().is_null() {
            return Err(Failure(anyhow::anyhow!("the hardware buffer is null")));
        }
        // SAFETY: environment and object are those of this call, and Java has the buffer until it returns.
        let buffer = unsafe { HardwareBuffer::from_jni(env.get_raw().cast(), buffer.as_raw().cast()) };
        // SAFETY: the handle is one of `open`.
        let found = locked(unsafe { shared(handle) }?)?.find(Frame::Shared(&buffer), degrees)?;
        array(env, &found)
    });
    found.resolve::<ThrowRuntimeExAndDefault>()
}

/// Keypoints of pixels of four bytes, red first, whose rows are `stride` bytes apart: x, y and score of each part.
#[unsafe(no_mangle)]
extern "system" fn Java_org_diptych_Poses_findInBytes<'a>(
    mut env: EnvUnowned<'a>,
    _: JClass<'a>,
    handle: jlong,
    pixels: JByteBuffer<'a>,
    width: jint,
    height: jint,
    stride: jint,
    degrees: jint,
) -> JFloatArray<'a> {
    let found = env.with_env(|env| -> Result<_, Failure> {
        let extent = |value: jint| u32::try_from(value).with_context(|| format!("an extent of {value}"));
        let (width, height, stride) = (extent(width)?, extent(height)?, extent(stride)?);
        let (place, len) =
            (env.get_direct_buffer_address(&pixels)?, env.get_direct_buffer_capacity(&pixels)?);
        // SAFETY: a direct buffer has so many bytes there, and Java has it until the call returns.
        let bytes = unsafe { std::slice::from_raw_parts(place, len) };
        // SAFETY: the handle is one of `open`.
        let mut poses = locked(unsafe { shared(handle) }?)?;
        let found = poses.find(Frame::Bytes { bytes, size: [width, height], stride }, degrees)?;
        array(env, &found)
    });
    found.resolve::<ThrowRuntimeExAndDefault>()
}

/// The session, by one thread at a time.
fn locked(shared: &Shared) -> anyhow::Result<std::sync::MutexGuard<'_, Poses>> {
    shared.lock().ok().context("an earlier call panicked: open another session")
}

/// Floats as Java's.
fn array<'a>(env: &mut jni::Env<'a>, values: &[f32]) -> Result<JFloatArray<'a>, Failure> {
    let array = env.new_float_array(values.len())?;
    array.set_region(env, 0, values)?;
    Ok(array)
}
