//! Every awkward kind of film, made on the spot: it goes in right, or it is
//! refused in one clear line. `./x test corpus` lists each case with its verdict.
//!
//! What is right is seen with another program's eyes: ffmpeg reads the film and
//! the title's Base, and both must show the same pictures at the same times, and
//! sound each beep with its flash.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::as_conversions,
    unreachable_pub,
    reason = "a witness states what it saw"
)]

#[path = "corpus/broken.rs"]
mod broken;
#[path = "corpus/brought.rs"]
mod brought;
#[path = "corpus/containers.rs"]
mod containers;
#[path = "corpus/edits.rs"]
mod edits;
#[path = "corpus/films.rs"]
mod films;
#[path = "corpus/odd.rs"]
mod odd;
#[path = "corpus/pictures.rs"]
mod pictures;
#[path = "corpus/sound.rs"]
mod sound;
#[path = "corpus/times.rs"]
mod times;
#[path = "corpus/watched.rs"]
mod watched;
