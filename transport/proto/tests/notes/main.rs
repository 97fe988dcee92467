//! Notes on single RPCs.

mod exemplars;
mod pair;
mod rare;
mod selection;
