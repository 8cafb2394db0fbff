//! What the decoder comes upon on its way and people should know: streams without a
//! decoder.

use super::link::{Heard, lock};
use gstreamer as gst;
use gstreamer::prelude::*;
use std::sync::{Arc, Mutex};

/// Notes streams that nothing here can decode.
pub(super) fn undecoded(decoder: &gst::Element, heard: &Arc<Mutex<Heard>>) {
    let heard = Arc::clone(heard);
    decoder.connect("unknown-type", false, move |values| {
        let caps = values.get(2)?.get::<gst::Caps>().ok()?;
        lock(&heard).undecoded.push(coding(&caps)?);
        None
    });
}

/// The name of a coding, with the four letters that films of other makers give it.
fn coding(caps: &gst::Caps) -> Option<String> {
    let structure = caps.structure(0)?;
    let letters = structure.get::<String>("fourcc").or_else(|_| structure.get::<String>("format")).ok();
    Some(letters.map_or_else(|| structure.name().to_string(), |more| format!("{}, {more}", structure.name())))
}
