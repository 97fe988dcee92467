//! Notes on single RPCs.

mod pair;
mod rare;
mod selection;
