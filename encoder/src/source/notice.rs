//! What the decoder comes upon on its way and people should know: streams without a
//! decoder, places where data are missing.

use super::link::{Heard, lock};
use gstreamer as gst;
use gstreamer::prelude::*;
use media::Span;
use std::sync::{Arc, Mutex};

/// Where a stream of packets was torn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Torn {
    /// How often.
    times: u32,
    /// How far from its start at first.
    at: Span,
}

impl Torn {
    /// For people.
    pub(super) fn told(self) -> String {
        let Self { times, at } = self;
        let more = match times - 1 {
            0 => String::new(),
            1 => " and once more".into(),
            more => format!(" and {more} more times"),
        };
        format!(
            "the film is interrupted at {at}{more}: data are missing there or another piece begins; it goes on \
             without a stop, and pictures may be spoilt up to the next key frame"
        )
    }
}

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

/// Counts the places where packets of a transport or program stream are missing: its
/// demuxer goes on behind them and says nothing.
pub(super) fn torn(pipeline: &gst::Pipeline, heard: &Arc<Mutex<Heard>>) {
    let heard = Arc::clone(heard);
    pipeline.connect_deep_element_added(move |_, _, element| {
        if element.factory().is_none_or(|factory| factory.name() != "tsdemux") {
            return;
        }
        let heard = Arc::clone(&heard);
        element.connect_pad_added(move |_, pad| {
            if pad.name().starts_with("video") {
                count(pad, &heard);
            }
        });
    });
}

fn count(pad: &gst::Pad, heard: &Arc<Mutex<Heard>>) {
    let (heard, first) = (Arc::clone(heard), Mutex::new(None));
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let Some(buffer) = info.buffer() else { return gst::PadProbeReturn::Ok };
        let mut first = first.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let time = buffer.pts();
        if first.is_some() && buffer.flags().contains(gst::BufferFlags::DISCONT) {
            let since = time.unwrap_or_default().saturating_sub(first.unwrap_or_default());
            let mut heard = lock(&heard);
            let torn = heard.torn.get_or_insert(Torn { times: 0, at: Span::from_nanos(since.nseconds()) });
            torn.times = torn.times.saturating_add(1);
        }
        if first.is_none() {
            *first = Some(time.unwrap_or_default());
        }
        gst::PadProbeReturn::Ok
    });
}
