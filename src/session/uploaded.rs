//! Constants on their way to a device: packed ones in one buffer, each of which is let go of when it is there.

use super::progress::Teller;
use super::shared::{Key, Shared, Uploaded};
use crate::alloc;
use crate::device::{Buffer, Device, Memory, Slice};
use crate::error::{Error, Result};
use crate::lower::{Constant, Packed, Program, pack};
use crate::task::Turns;
use half::f16;
use std::sync::Arc;

/// Bytes of constants that are uploaded before the thread's other tasks have their turn.
const UPLOADED_AT_ONCE: usize = if cfg!(target_family = "wasm") { 4 << 20 } else { usize::MAX };

/// Packed constants of fewer bytes are written together: a driver takes as long for a write as it takes for some kilobytes.
const SMALL: usize = 64 << 10;

/// Bytes of small constants from which on they are written.
const TOGETHER: usize = 4 << 20;

/// Numbers as rows of halves, in whole words. One beyond the largest half is that one, as where a device converts rows.
pub(super) fn rounded_rows(rows: &[f32]) -> Result<Vec<u8>> {
    let mut bytes = alloc::zeros((2 * rows.len()).next_multiple_of(4), "rows of halves")?;
    let largest = f16::MAX.to_f32();
    bytes.as_chunks_mut().0.iter_mut().zip(rows).for_each(|(bytes, &row)| {
        let row = if row.is_finite() { row.clamp(-largest, largest) } else { row };
        *bytes = f16::from_f32(row).to_ne_bytes();
    });
    Ok(bytes)
}

/// Writes `bytes` to `buffer`, from an offset on.
pub(super) async fn upload(
    device: &dyn Device,
    (buffer, offset): (&Buffer, u64),
    bytes: &[u8],
    teller: &Teller<'_>,
    turns: &mut Turns,
) -> Result<()> {
    let mut at = offset;
    for part in bytes.chunks(UPLOADED_AT_ONCE) {
        device.write(&buffer.slice(at, part.len() as u64)?, part)?;
        at += part.len() as u64;
        teller.uploaded(part.len() as u64);
        turns.pass().await;
    }
    Ok(())
}

/// Uploads packed constants, each of which is let go of then; small ones are written together.
async fn upload_parts(
    device: &dyn Device,
    buffer: &Buffer,
    Packed { parts, offsets, bytes }: Packed,
    teller: &Teller<'_>,
    turns: &mut Turns,
) -> Result<()> {
    let (mut together, mut first, mut written) = (Vec::new(), 0, 0);
    for (part, offset) in parts.into_iter().zip(offsets) {
        let small = part.len() < SMALL;
        if (!small || together.len() > TOGETHER) && !together.is_empty() {
            upload(device, (buffer, first), &together, teller, turns).await?;
            written += together.len() as u64;
            together.clear();
        }
        if !small {
            upload(device, (buffer, offset), &part, teller, turns).await?;
            written += part.len() as u64;
            continue;
        }
        if together.is_empty() {
            first = offset;
        }
        together.resize((offset - first) as usize, 0);
        together.extend_from_slice(&part);
    }
    upload(device, (buffer, first), &together, teller, turns).await?;
    // What lies between constants is not written.
    teller.uploaded(bytes.saturating_sub(written + together.len() as u64));
    Ok(())
}

/// What the packed constants of a program became.
pub(super) struct PackedConstants {
    /// Where each lies.
    pub(super) slices: Vec<Slice>,
    /// Those that sessions for other extents have, too.
    pub(super) held: Vec<Arc<Uploaded>>,
    /// How many bytes were uploaded.
    pub(super) bytes: u64,
}

/// Packs the constants that no session for other extents has, and uploads them into one buffer.
pub(super) async fn packed_constants(
    device: &dyn Device,
    program: &Program,
    shared_with: Option<&Shared>,
    teller: &Teller<'_>,
    turns: &mut Turns,
) -> Result<PackedConstants> {
    let key =
        |constant: &Constant| shared_with.and_then(|shared| Some((shared, Key::Packed(constant.key()?))));
    let keys: Vec<Option<(&Shared, Key)>> = program.constants.iter().map(key).collect();
    let known = |key: &Option<(&Shared, Key)>| key.as_ref().and_then(|(shared, key)| shared.uploaded(key));
    let known: Vec<Option<Arc<Uploaded>>> = keys.iter().map(known).collect();
    let fresh = program.constants.iter().zip(&known).filter(|(_, known)| known.is_none());
    let fresh: Vec<&Constant> = fresh.map(|(constant, _)| constant).collect();
    let packed = pack(&fresh, program.constant_alignment(), turns).await?;
    let bytes = packed.bytes;
    let places: Vec<(u64, u64)> =
        packed.offsets.iter().zip(&packed.parts).map(|(&offset, part)| (offset, part.len() as u64)).collect();
    let buffer = match bytes {
        0 => None,
        bytes => {
            let buffer = device.alloc(bytes, Memory::Device)?;
            teller.bytes(bytes);
            upload_parts(device, &buffer, packed, teller, turns).await?;
            Some(buffer)
        }
    };
    let mut places = places.into_iter();
    let (mut slices, mut held) = (Vec::with_capacity(known.len()), Vec::new());
    for ((constant, key), known) in program.constants.iter().zip(keys).zip(known) {
        if let Some(known) = known {
            slices.push(known.slice.clone());
            held.push(known);
            continue;
        }
        let missing = || Error::Internal("a constant without a buffer".to_owned());
        let (buffer, (offset, length)) = buffer.as_ref().zip(places.next()).ok_or_else(missing)?;
        let slice = buffer.slice(offset, length)?;
        if let Some((shared, key)) = key {
            held.push(shared.keep(key, slice.clone(), constant.tensor().clone()));
        }
        slices.push(slice);
    }
    Ok(PackedConstants { slices, held, bytes })
}
