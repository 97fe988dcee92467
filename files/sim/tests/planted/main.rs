//! Histories made by hand: good ones that pass, and planted violations that the checkers must find.

mod appends;
mod files;
mod locks;
mod names;
mod prefixes;
mod script;
