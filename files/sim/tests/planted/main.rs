//! Histories made by hand: good histories that pass, and planted violations that the checkers must
//! find.

mod appends;
mod files;
mod locks;
mod names;
mod prefixes;
mod script;
