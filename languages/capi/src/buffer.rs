//! Buffers: bytes that C programs receive and free.

use crate::boundary::run_plain;
use apus::Bytes;
use std::ffi::c_void;

/// Bytes of a received message; `apus_buffer_free` frees them. A zeroed buffer is empty and needs
/// no `apus_buffer_free`.
#[derive(Debug)]
#[repr(C)]
pub struct Buffer {
    /// The bytes, valid until the buffer is freed; null if there are none to free.
    pub data: *const u8,
    /// Number of bytes.
    pub length: usize,
    /// Internal to apus.
    pub owner: [*mut c_void; 4],
}

// The owner is a `Bytes` in place; a box would cost an allocation per response.
const _: () = assert!(size_of::<Bytes>() == size_of::<[*mut c_void; 4]>());
const _: () = assert!(align_of::<Bytes>() <= align_of::<[*mut c_void; 4]>());

impl Buffer {
    /// The value of an empty buffer.
    pub(crate) const EMPTY: Self =
        Self { data: std::ptr::null(), length: 0, owner: [std::ptr::null_mut(); 4] };

    pub(crate) fn new(bytes: Bytes) -> Self {
        // The pointer of an empty `Bytes` is not null either, so each buffer is freed.
        let (data, length) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the sizes are equal, and a `Bytes` consists of pointers and numbers without
        // padding. It is not dropped here but by `take`.
        let owner = unsafe { std::mem::transmute::<Bytes, [*mut c_void; 4]>(bytes) };
        Self { data, length, owner }
    }

    /// Takes the bytes out. `None` if the buffer owns none.
    ///
    /// # Safety
    ///
    /// The buffer is empty or as [`Buffer::new`] returned it.
    unsafe fn take(&mut self) -> Option<Bytes> {
        let Self { data, owner, .. } = std::mem::replace(self, Self::EMPTY);
        // SAFETY: not empty, so `owner` is the `Bytes` of `new`, with no other owner.
        (!data.is_null()).then(|| unsafe { std::mem::transmute::<[*mut c_void; 4], Bytes>(owner) })
    }
}

/// Frees the bytes of a buffer and makes it empty. Does nothing for null and for an empty buffer,
/// so freeing it twice is harmless. A copy of the struct is not a separate buffer.
///
/// # Safety
///
/// `buffer` is null, or points to a buffer that is empty or was written by a function of apus.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_buffer_free(buffer: *mut Buffer) {
    run_plain((), || {
        // SAFETY: promised by the caller.
        if let Some(buffer) = unsafe { buffer.as_mut() } {
            // SAFETY: promised by the caller.
            drop(unsafe { buffer.take() });
        }
    });
}
