//! A run encoded before it is asked for.
//!
//! Encoding some thirty dispatches takes wgpu about as long as a fast GPU takes to run them, and
//! `queue.write_buffer` makes a staging buffer at each call. So the commands of a run are encoded
//! while the device works on the run before: the copies from an upload buffer that stays mapped
//! until it is filled, the dispatches, and the copies to a staging buffer. What is left for the
//! run itself is to fill, submit and wait.

use super::fill::fill;
use super::flight::{Landing, Source};
use super::record::Recorded;
use super::{WgpuDevice, lock};
use crate::device::Slice;
use crate::error::{Error, Result};

/// Idle upload buffers kept, and the size above which none is.
const KEPT: usize = 4;
const KEPT_BYTES: u64 = 64 << 20;

/// Where the bytes of a run go and come from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ends {
    writes: Vec<End>,
    reads: Vec<End>,
}

#[derive(Debug, Clone, PartialEq)]
struct End {
    buffer: wgpu::Buffer,
    offset: u64,
    bytes: u64,
}

impl Ends {
    /// Bytes of the upload buffer, each write from a whole vec4 on.
    fn upload_bytes(&self) -> u64 {
        self.writes.iter().map(|end| end.bytes.next_multiple_of(16)).sum()
    }
}

/// A run that only lacks its inputs.
#[derive(Debug)]
pub(super) struct Prepared {
    ends: Ends,
    commands: wgpu::CommandBuffer,
    /// Mapped, until the run is submitted.
    upload: Option<wgpu::Buffer>,
    landing: Option<Landing>,
}

/// Runs of a recording that are encoded already.
pub(super) type Shelf = std::sync::Mutex<Vec<Prepared>>;

impl WgpuDevice {
    /// Checks the slices of a run.
    pub(super) fn ends(&self, writes: &[(&Slice, &[u8])], reads: &[&Slice]) -> Result<Ends> {
        let end = |slice: &Slice, bytes: u64| {
            self.word_aligned(slice)?;
            Ok(End { buffer: self.raw(&slice.buffer)?.clone(), offset: slice.offset, bytes })
        };
        let writes = writes.iter().map(|(slice, bytes)| {
            self.fits(slice, bytes)?;
            end(slice, bytes.len() as u64)
        });
        Ok(Ends {
            writes: writes.collect::<Result<_>>()?,
            reads: reads.iter().map(|slice| end(slice, slice.bytes)).collect::<Result<_>>()?,
        })
    }

    /// A prepared run of `recorded` between `ends`: the one made during the run before, or a new
    /// one. To be called in a scope.
    pub(super) fn prepared(&self, recorded: &Recorded, ends: &Ends) -> Result<Prepared> {
        let mut shelf = lock(&recorded.shelf);
        let ready = shelf.iter().position(|prepared| prepared.ends == *ends).map(|at| shelf.swap_remove(at));
        drop(shelf);
        match ready {
            Some(prepared) => Ok(prepared),
            None => self.prepare(recorded, ends),
        }
    }

    /// Encodes the next run of `recorded` between `ends`, which are likely to be the same. To be
    /// called in a scope, while the device is busy.
    pub(super) fn prepare_next(&self, recorded: &Recorded, ends: &Ends) -> Result<()> {
        if lock(&recorded.shelf).iter().any(|prepared| prepared.ends == *ends) {
            return Ok(());
        }
        let next = self.prepare(recorded, ends)?;
        let mut shelf = lock(&recorded.shelf);
        // One is enough, and other ends are not likely to come back.
        shelf.clear();
        shelf.push(next);
        Ok(())
    }

    fn prepare(&self, recorded: &Recorded, ends: &Ends) -> Result<Prepared> {
        let mut encoder =
            self.inner.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let bytes = ends.upload_bytes();
        let upload = if bytes == 0 { None } else { Some(self.take_upload(bytes)) };
        let mut from = 0;
        for (end, upload) in ends.writes.iter().zip(upload.iter().cycle()) {
            let words = end.bytes.next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
            if words > 0 {
                encoder.copy_buffer_to_buffer(upload, from, &end.buffer, end.offset, words);
            }
            from += end.bytes.next_multiple_of(16);
        }
        recorded.encode(&mut encoder);
        let sources =
            ends.reads.iter().map(|end| Source { buffer: &end.buffer, offset: end.offset, bytes: end.bytes });
        let landing = self.encode_landing(&mut encoder, &sources.collect::<Vec<_>>());
        Ok(Prepared { ends: ends.clone(), commands: encoder.finish(), upload, landing })
    }

    /// Fills in the inputs and submits. To be called in a scope.
    pub(super) fn depart_prepared(
        &self,
        prepared: Prepared,
        writes: &[(&Slice, &[u8])],
    ) -> Result<super::flight::Flight> {
        let Prepared { ends, commands, upload, landing } = prepared;
        if let Some(upload) = &upload {
            let bytes = ends.upload_bytes();
            let mut view = upload
                .get_mapped_range_mut(0..bytes)
                .map_err(|error| self.failed("get_mapped_range_mut", error.to_string()))?;
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
        }
        Ok(self.submit_flight(commands, upload, landing))
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
        if idle.len() < KEPT && buffer.size() <= KEPT_BYTES {
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
