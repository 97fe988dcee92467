//! The boundary to C: converts arguments to references, and failures and panics to a status.

use crate::error::ErrorC;
use apus_bindings::{Failure, Status};
use std::any::Any;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Runs a function's body. A failure is written to `error` if that is not null.
///
/// # Safety
///
/// `error` is null or points to memory for an [`ErrorC`].
pub(crate) unsafe fn run(error: *mut ErrorC, body: impl FnOnce() -> Result<(), Failure>) -> Status {
    // A panic may leave an endpoint unusable but never unsafe: its locks are poisoned or its
    // threads have ended.
    let result = catch_unwind(AssertUnwindSafe(body));
    let failure = match result {
        Ok(Ok(())) => return Status::Ok,
        Ok(Err(failure)) => failure,
        Err(panic) => internal(panic.as_ref()),
    };
    if !error.is_null() {
        // SAFETY: not null, so it points to memory for an error.
        unsafe { error.write(ErrorC::new(&failure)) };
    }
    failure.status
}

/// Runs a body that cannot fail. Returns `otherwise` if it panics.
pub(crate) fn run_plain<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

fn internal(panic: &(dyn Any + Send)) -> Failure {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("no reason given");
    Failure {
        status: Status::Internal,
        execution: apus::Execution::Unknown,
        text: format!("a mistake of apus: {text}"),
    }
}

/// Returns the error of an argument.
pub(crate) fn invalid(argument: &str, problem: &str) -> Failure {
    Failure::new(Status::InvalidArgument, format!("`{argument}` {problem}"))
}

/// Returns the value behind a pointer.
///
/// # Safety
///
/// `pointer` is null or valid for reads while the result is used.
pub(crate) unsafe fn reference<'a, T>(pointer: *const T, argument: &str) -> Result<&'a T, Failure> {
    // SAFETY: promised by the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| invalid(argument, "is null"))
}

/// Rejects a null pointer to memory for a result.
pub(crate) fn check_result<T>(pointer: *mut T, argument: &str) -> Result<(), Failure> {
    if pointer.is_null() { Err(invalid(argument, "is null")) } else { Ok(()) }
}

/// Returns the bytes of a message. A null pointer is valid if `length` is 0.
///
/// # Safety
///
/// `data` is null or points to `length` bytes, which do not change while the result is used.
pub(crate) unsafe fn bytes<'a>(
    data: *const c_void,
    length: usize,
    argument: &str,
) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(invalid(argument, "is null, and its length is not 0"));
    }
    if isize::try_from(length).is_err() {
        return Err(invalid(argument, "is longer than memory can be"));
    }
    // SAFETY: promised by the caller; the length was checked.
    Ok(unsafe { std::slice::from_raw_parts(data.cast(), length) })
}

/// Returns a text; `None` for a null pointer.
///
/// # Safety
///
/// `text` is null or points to bytes that end with 0 and do not change while the result is used.
pub(crate) unsafe fn text<'a>(
    text: *const c_char,
    argument: &str,
) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: promised by the caller.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| invalid(argument, "is not UTF-8"))
}

/// Returns the time to wait; negative nanoseconds mean no limit.
pub(crate) fn timeout(nanoseconds: i64) -> Option<Duration> {
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status() {
        let mut error = ErrorC::NONE;
        // SAFETY: `error` is one.
        let status = unsafe { run(&raw mut error, || panic!("by a {}", "test")) };
        assert_eq!((status, error.status), (Status::Internal, Status::Internal));
        let text = error.text.map(|letter| letter as u8);
        assert!(text.starts_with(b"a mistake of apus: by a test\0"));
        // SAFETY: null is no error to write.
        let status = unsafe { run(std::ptr::null_mut(), || std::panic::panic_any(7)) };
        assert_eq!(status, Status::Internal);
        assert!(run_plain(true, || panic!("by a test")));
    }
}
