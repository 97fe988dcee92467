//! The directory store: its promises, and crashes.

mod crash;
mod history;
mod promises;
mod records;
mod support;
