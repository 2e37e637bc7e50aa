//! A run encoded before it is asked for.
//!
//! Encoding some thirty dispatches takes wgpu about as long as a fast GPU takes to run them, and
//! `queue.write_buffer` makes a staging buffer at each call. So the commands of a run are encoded
//! while the device works on the run before: the copies from an upload buffer that stays mapped
//! until it is filled, the dispatches, and the copies to a staging buffer. What is left for the
//! run itself is to fill, submit and wait.

use super::fill::fill;
use super::record::Recorded;
use super::submission::{DownloadRange, Staged};
use super::{WgpuDevice, lock};
use crate::device::Slice;
use crate::error::{Error, Result};

/// Idle upload buffers kept, and the size above which none is.
const MAX_KEPT: usize = 4;
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// Where the bytes of a run go and come from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transfers {
    writes: Vec<Transfer>,
    reads: Vec<Transfer>,
}

#[derive(Debug, Clone, PartialEq)]
struct Transfer {
    buffer: wgpu::Buffer,
    offset: u64,
    bytes: u64,
}

impl Transfers {
    /// Bytes of the upload buffer, each write from a whole vec4 on.
    fn upload_bytes(&self) -> u64 {
        self.writes.iter().map(|transfer| transfer.bytes.next_multiple_of(16)).sum()
    }
}

/// A run that only lacks its inputs.
#[derive(Debug)]
pub(super) struct Prepared {
    transfers: Transfers,
    commands: wgpu::CommandBuffer,
    /// Mapped, until the run is submitted.
    upload: Option<wgpu::Buffer>,
    readback: Option<Staged>,
}

/// Runs of a recording that are encoded already.
pub(super) type ReadyRuns = std::sync::Mutex<Vec<Prepared>>;

impl WgpuDevice {
    /// Checks the slices of a run.
    pub(super) fn transfers(&self, writes: &[(&Slice, &[u8])], reads: &[&Slice]) -> Result<Transfers> {
        let transfer = |slice: &Slice, bytes: u64| {
            self.word_aligned(slice)?;
            Ok(Transfer { buffer: self.raw(&slice.buffer)?.clone(), offset: slice.offset, bytes })
        };
        let writes = writes.iter().map(|(slice, bytes)| {
            self.fits(slice, bytes)?;
            transfer(slice, bytes.len() as u64)
        });
        Ok(Transfers {
            writes: writes.collect::<Result<_>>()?,
            reads: reads.iter().map(|slice| transfer(slice, slice.bytes)).collect::<Result<_>>()?,
        })
    }

    /// A prepared run of `recorded` with `transfers`: the one made during the run before, or a new
    /// one. To be called in a scope.
    pub(super) fn prepared(&self, recorded: &Recorded, transfers: &Transfers) -> Result<Prepared> {
        let mut ready = lock(&recorded.ready);
        let place = ready.iter().position(|prepared| prepared.transfers == *transfers);
        let known = place.map(|at| ready.swap_remove(at));
        drop(ready);
        match known {
            Some(prepared) => Ok(prepared),
            None => self.prepare(recorded, transfers),
        }
    }

    /// Encodes the next run of `recorded` with `transfers`, which are likely to be the same. To be
    /// called in a scope, while the device is busy.
    pub(super) fn prepare_next(&self, recorded: &Recorded, transfers: &Transfers) -> Result<()> {
        if lock(&recorded.ready).iter().any(|prepared| prepared.transfers == *transfers) {
            return Ok(());
        }
        let next = self.prepare(recorded, transfers)?;
        let mut ready = lock(&recorded.ready);
        // One is enough, and other transfers are not likely to come back.
        ready.clear();
        ready.push(next);
        Ok(())
    }

    fn prepare(&self, recorded: &Recorded, transfers: &Transfers) -> Result<Prepared> {
        let mut encoder =
            self.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let bytes = transfers.upload_bytes();
        // What is mapped in a browser is a copy of its own.
        let direct = bytes == 0 || cfg!(target_family = "wasm");
        let upload = if direct { None } else { Some(self.take_upload(bytes)) };
        let mut from = 0;
        for (transfer, upload) in transfers.writes.iter().zip(upload.iter().cycle()) {
            let words = transfer.bytes.next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
            if words > 0 {
                self.inner.counters.copy();
                encoder.copy_buffer_to_buffer(upload, from, &transfer.buffer, transfer.offset, words);
            }
            from += transfer.bytes.next_multiple_of(16);
        }
        recorded.encode(&mut encoder);
        let sources = transfers.reads.iter().map(|transfer| DownloadRange {
            buffer: &transfer.buffer,
            offset: transfer.offset,
            bytes: transfer.bytes,
        });
        let readback = self.encode_readback(&mut encoder, &sources.collect::<Vec<_>>());
        Ok(Prepared { transfers: transfers.clone(), commands: encoder.finish(), upload, readback })
    }

    /// Why a buffer that was made mapped is not: wgpu makes buffers on a lost device without a word.
    fn unmapped(&self, message: String) -> Error {
        #[cfg(not(target_family = "wasm"))]
        if let Err(error) = self.wait_all()
            && error.is_device_lost()
        {
            return error;
        }
        self.failed("get_mapped_range_mut", message)
    }

    /// Fills in the inputs and submits. To be called in a scope.
    pub(super) fn submit_prepared(
        &self,
        prepared: Prepared,
        writes: &[(&Slice, &[u8])],
    ) -> Result<super::submission::Submission> {
        let Prepared { transfers, commands, upload, readback } = prepared;
        if let Some(upload) = &upload {
            let bytes = transfers.upload_bytes();
            let mut view =
                upload.get_mapped_range_mut(0..bytes).map_err(|error| self.unmapped(error.to_string()))?;
            let mut at = 0;
            for (_, bytes) in writes {
                fill(view.slice(at..at + bytes.len()), bytes);
                let end = at + bytes.len();
                // The rest of the last word goes along.
                let rest = bytes.len().next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT as usize) - bytes.len();
                view.slice(end..end + rest).copy_from_slice(&[0; 4][..rest]);
                at += bytes.len().next_multiple_of(16);
            }
            drop(view);
            upload.unmap();
        } else {
            writes.iter().try_for_each(|(slice, bytes)| self.enqueue_write(slice, bytes))?;
        }
        Ok(self.submit_commands(commands, upload, readback))
    }

    /// An idle upload buffer of at least `bytes` bytes, or a new one; mapped.
    fn take_upload(&self, bytes: u64) -> wgpu::Buffer {
        let mut idle = lock(&self.inner.uploads);
        if let Some(position) = idle.iter().position(|buffer| buffer.size() >= bytes) {
            return idle.swap_remove(position);
        }
        let outgrown = idle.pop();
        drop(idle);
        drop(outgrown);
        self.inner.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("diptych upload"),
            size: bytes,
            usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
            mapped_at_creation: true,
        })
    }

    /// Keeps an upload buffer that is mapped again.
    pub(super) fn keep_upload(&self, buffer: wgpu::Buffer) {
        let mut idle = lock(&self.inner.uploads);
        if idle.len() < MAX_KEPT && buffer.size() <= MAX_KEPT_BYTES {
            idle.push(buffer);
        }
    }

    /// Whether `bytes` fit the slice.
    pub(super) fn fits(&self, slice: &Slice, bytes: &[u8]) -> Result<()> {
        if bytes.len() as u64 <= slice.bytes {
            return Ok(());
        }
        Err(Error::input(
            "write",
            format!("{} bytes", bytes.len()),
            format!("at most the slice's {}", slice.bytes),
        ))
    }
}
