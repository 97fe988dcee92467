//! What do those learn who watch single RPCs?

mod pair;
mod rare;
mod selected;
