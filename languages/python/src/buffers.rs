//! Buffers: bytes passed from Python and exposed to Python, without copies where possible.
//!
//! This file contains the crate's unsafe code (`fork.rs` has one more line).

#![allow(unsafe_code)]

use apus::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// Minimum length of a `bytes` object that is sent without a copy. Chosen by us: for shorter ones,
/// a copy costs less than an owner that must be released under the GIL later.
const WITHOUT_COPY: usize = 16 << 10;

/// Returns whether a bytes-like object has this content; `None` for other objects.
pub(crate) fn equals(object: &Bound<'_, PyAny>, content: &[u8]) -> Option<bool> {
    if let Ok(bytes) = object.cast_exact::<PyBytes>() {
        return Some(bytes.as_bytes() == content);
    }
    copy(object).ok().map(|bytes| bytes == content)
}

/// Converts a `bytes` object. A long one is not copied, since it never changes. Not for subclasses,
/// whose destruction may run application code.
pub(crate) fn of_bytes(bytes: &Bound<'_, PyBytes>) -> Bytes {
    struct Owner(
        #[expect(dead_code, reason = "keeps the bytes alive")] Py<PyBytes>,
        *const u8,
        usize,
    );
    // SAFETY: the pointer is to memory of the owned `bytes` object, which never changes.
    unsafe impl Send for Owner {}
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            // SAFETY: the object is owned, so its bytes are alive, and they never change.
            unsafe { std::slice::from_raw_parts(self.1, self.2) }
        }
    }
    let content = bytes.as_bytes();
    if content.len() < WITHOUT_COPY {
        return Bytes::copy_from_slice(content);
    }
    Bytes::from_owner(Owner(bytes.clone().unbind(), content.as_ptr(), content.len()))
}

/// Copies any other buffer that may change, such as a `bytearray` or an array.
pub(crate) fn copy(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let mut view = MaybeUninit::<ffi::Py_buffer>::uninit();
    // SAFETY: `object` is alive, and `view` is memory for a view. The GIL is held.
    let result =
        unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), ffi::PyBUF_SIMPLE) };
    if result != 0 {
        let error = PyErr::fetch(object.py());
        if !error.is_instance_of::<PyTypeError>(object.py()) {
            return Err(error);
        }
        let kind = object.get_type().name()?;
        let text = format!("a bytes-like object, or a list of them, is required, not '{kind}'");
        return Err(PyTypeError::new_err(text));
    }
    // SAFETY: the call succeeded, so the view is filled in.
    let mut view = unsafe { view.assume_init() };
    let bytes = if view.len <= 0 {
        Bytes::new()
    } else {
        // SAFETY: a simple view is contiguous. Its memory is valid until the view is released, and
        // no other Python thread can change it while the GIL is held.
        Bytes::copy_from_slice(unsafe {
            std::slice::from_raw_parts(view.buf.cast::<u8>(), view.len.cast_unsigned())
        })
    };
    // SAFETY: the view was filled in by `PyObject_GetBuffer`, and is released once.
    unsafe { ffi::PyBuffer_Release(&raw mut view) };
    Ok(bytes)
}

/// Fills in a view of `bytes`, which `owner` holds and never changes.
///
/// # Safety
///
/// `view` is the argument of `__getbuffer__`, and `bytes` live as long as `owner`.
pub(crate) unsafe fn fill_view(
    owner: &Bound<'_, PyAny>,
    bytes: &[u8],
    view: *mut ffi::Py_buffer,
    flags: c_int,
) -> PyResult<()> {
    const READ_ONLY: c_int = 1;
    let start = bytes.as_ptr().cast_mut().cast::<c_void>();
    let length = bytes.len().cast_signed();
    // SAFETY: promised by the caller. The view takes a reference to `owner`, and is read-only.
    let result =
        unsafe { ffi::PyBuffer_FillInfo(view, owner.as_ptr(), start, length, READ_ONLY, flags) };
    if result == 0 { Ok(()) } else { Err(PyErr::fetch(owner.py())) }
}
