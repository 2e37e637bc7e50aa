//! What a model's file says of itself.

use crate::memory::{allocate, free};
use crate::pointers::{allocated_text, hand_out, own, put, put_text};
use crate::status::calls;
use diptych_pointers::text;
use ort_sys::{OrtAllocator, OrtModelMetadata, OrtSession};
use std::ffi::c_char;
use std::mem::size_of;
use std::ptr::null_mut;

calls! {
    fn SessionGetModelMetadata(session: *const OrtSession, out: *mut *mut OrtModelMetadata) {
        hand_out(out, own(session)?.about.clone())
    }

    fn ModelMetadataGetProducerName(
        metadata: *const OrtModelMetadata,
        allocator: *mut OrtAllocator,
        out: *mut *mut c_char,
    ) {
        put_text(out, allocator, &own(metadata)?.producer)
    }

    fn ModelMetadataGetGraphName(
        metadata: *const OrtModelMetadata,
        allocator: *mut OrtAllocator,
        out: *mut *mut c_char,
    ) {
        put_text(out, allocator, &own(metadata)?.name)
    }

    fn ModelMetadataGetDomain(
        metadata: *const OrtModelMetadata,
        allocator: *mut OrtAllocator,
        out: *mut *mut c_char,
    ) {
        put_text(out, allocator, &own(metadata)?.domain)
    }

    fn ModelMetadataGetDescription(
        metadata: *const OrtModelMetadata,
        allocator: *mut OrtAllocator,
        out: *mut *mut c_char,
    ) {
        put_text(out, allocator, &own(metadata)?.description)
    }

    fn ModelMetadataGetVersion(metadata: *const OrtModelMetadata, out: *mut i64) {
        put("out", out, own(metadata)?.version)
    }

    /// NULL if there is no such key.
    fn ModelMetadataLookupCustomMetadataMap(
        metadata: *const OrtModelMetadata,
        allocator: *mut OrtAllocator,
        key: *const c_char,
        out: *mut *mut c_char,
    ) {
        let found = own(metadata)?.properties.get(text("key", key)?);
        let found = found.map(|value| allocated_text(allocator, value)).transpose()?;
        put("out", out, found.unwrap_or(null_mut()))
    }

    /// NULL and 0 if there are none.
    fn ModelMetadataGetCustomMetadataMapKeys(
        metadata: *const OrtModelMetadata,
        allocator: *mut OrtAllocator,
        keys: *mut *mut *mut c_char,
        count: *mut i64,
    ) {
        let names = &own(metadata)?.properties;
        put("count", count, names.len() as i64)?;
        put("keys", keys, null_mut())?;
        if names.is_empty() {
            return Ok(());
        }
        let list = allocate(allocator, names.len() * size_of::<*mut c_char>())?.cast::<*mut c_char>();
        for (at, name) in names.keys().enumerate() {
            match allocated_text(allocator, name) {
                Ok(name) => list.add(at).write(name),
                Err(failure) => {
                    for earlier in 0..at {
                        free(allocator, list.add(earlier).read().cast())?;
                    }
                    free(allocator, list.cast())?;
                    return Err(failure);
                }
            }
        }
        put("keys", keys, list)
    }
}
