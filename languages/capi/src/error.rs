//! Errors in the form for C programs.

use apus::Execution;
use apus_bindings::{Failure, Status};
use std::ffi::c_char;

/// Size of the text of an error in bytes, including the terminating 0. A longer text is cut.
pub const APUS_ERROR_TEXT_SIZE: usize = 248;

/// Whether the request of a failed call was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum ExecutionC {
    /// The server did not execute the request and never will: calling again is safe.
    NotExecuted = 0,
    /// The server executed the request, and the response is lost.
    Executed = 1,
    /// Unknown. Calling again may execute the request a second time.
    Unknown = 2,
}

/// The reason why a function failed. Functions that take a pointer to an error write it only if
/// they fail; the pointer may be null.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct ErrorC {
    /// The status that the function returns.
    pub status: Status,
    /// For calls: whether the request was executed. Otherwise `APUS_EXECUTION_NOT_EXECUTED`.
    pub execution: ExecutionC,
    /// One line for people, in UTF-8, 0-terminated.
    pub text: [c_char; APUS_ERROR_TEXT_SIZE],
}

impl ErrorC {
    /// The value without an error.
    pub(crate) const NONE: Self = Self {
        status: Status::Ok,
        execution: ExecutionC::NotExecuted,
        text: [0; APUS_ERROR_TEXT_SIZE],
    };

    pub(crate) fn new(failure: &Failure) -> Self {
        let execution = match failure.execution {
            Execution::NotExecuted => ExecutionC::NotExecuted,
            Execution::Executed => ExecutionC::Executed,
            Execution::Unknown => ExecutionC::Unknown,
        };
        let mut text = [0; APUS_ERROR_TEXT_SIZE];
        copy_text(&failure.text, &mut text);
        Self { status: failure.status, execution, text }
    }
}

/// Copies a text and a terminating 0. Cuts it between two characters if it is too long. Returns
/// whether it is complete.
pub(crate) fn copy_text(text: &str, into: &mut [c_char]) -> bool {
    let Some(room) = into.len().checked_sub(1) else { return false };
    // For C, a text ends at its first 0.
    let text = text.split('\0').next().unwrap_or_default();
    let is_boundary = |end: &usize| text.is_char_boundary(*end);
    let end = (0..=room.min(text.len())).rev().find(is_boundary).unwrap_or(0);
    for (to, from) in into.iter_mut().zip(text[..end].bytes()) {
        *to = from as c_char;
    }
    into[end] = 0;
    end == text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut into = [1; 6];
        assert!(copy_text("12345", &mut into));
        assert_eq!(into, [49, 50, 51, 52, 53, 0]);
        assert!(!copy_text("1234é", &mut into));
        assert_eq!(into[..5], [49, 50, 51, 52, 0]);
        assert!(!copy_text("any", &mut []));
        assert!(copy_text("a\0b", &mut into));
        assert_eq!(into[..2], [97, 0]);
    }
}
