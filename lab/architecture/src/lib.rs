//! Checks of the repository as a whole, run by the tests:
//!
//! | test | guarantee |
//! |---|---|
//! | `walls` | a wing depends only on the wings named in its row; every package is on the map |
//! | `layers` | modules import only lower modules, and no files import each other in a circle |
//! | `holders` | only listed files take the state groups of `files/core` |
//! | `spec` | each requirement has a source and is cited from code and from a test |
//! | `labels` | each label of an invariant is defined once, and each cited label is defined |
//! | `citations` | each cited symbol of the Linux module and each link of a document exists |
//! | `samples` | each block of code on the pages for users is text of a file that tests run |
//! | `wall_clock` | the wall clock is read for dates only |
//!
//! The package reads source text: macros are not expanded. It is not published.

#![forbid(unsafe_code)]

pub mod imports;
pub mod layers;
pub mod packages;
pub mod repository;
