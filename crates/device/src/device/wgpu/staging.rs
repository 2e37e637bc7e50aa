//! Idle buffers that results are read from.

use super::{WgpuDevice, lock};

/// Idle staging buffers kept, and the size above which none is: one large read should not hold
/// memory for ever.
const MAX_KEPT: usize = 4;
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// Smallest staging buffer: one size serves most small outputs.
const MIN_STAGING_BYTES: u64 = 64 << 10;

impl WgpuDevice {
    /// An idle staging buffer of at least `bytes` bytes, or a new one.
    pub(super) fn take_staging(&self, bytes: u64) -> wgpu::Buffer {
        let mut idle = lock(&self.inner.staging);
        if let Some(position) = idle.iter().position(|buffer| buffer.size() >= bytes) {
            return idle.swap_remove(position);
        }
        // All idle ones are too small: the new one replaces one of them.
        let outgrown = idle.pop();
        drop(idle);
        drop(outgrown);
        let size = match bytes.checked_next_power_of_two() {
            Some(size) if size <= MAX_KEPT_BYTES => size.max(MIN_STAGING_BYTES),
            _ => bytes,
        };
        self.inner.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("diptych staging"),
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        })
    }

    pub(super) fn keep_staging(&self, buffer: wgpu::Buffer) {
        let mut idle = lock(&self.inner.staging);
        if idle.len() < MAX_KEPT && buffer.size() <= MAX_KEPT_BYTES {
            idle.push(buffer);
        }
    }
}
