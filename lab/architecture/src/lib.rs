//! Checks of the repository as a whole, which its tests run:
//!
//! | test | what holds |
//! |---|---|
//! | `walls` | a wing depends only on the wings that its row names; every package is on the map |
//! | `layers` | modules import only lower modules, and no files import each other in a circle |
//! | `holders` | the groups of state of `files/core` are taken only by the files of a list |
//! | `spec` | each requirement has a source, is cited from code and from a test |
//! | `labels` | each label of an invariant is defined once, and each cited label is defined |
//! | `citations` | each cited symbol of the Linux module and each link of a document exists |
//! | `wall_clock` | the wall clock is read for dates only |
//!
//! The package reads source text: macros are not expanded. It is not published.

#![forbid(unsafe_code)]

pub mod imports;
pub mod layers;
pub mod packages;
pub mod repository;
