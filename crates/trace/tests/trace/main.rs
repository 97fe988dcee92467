//! Is what is recorded what is read, through the rings and through files, also broken ones?

mod broken;
mod recording;
