//! Driving one GStreamer element by hand.
//!
//! A codec element is a function from buffers to buffers. Linked to two pads of
//! our own it runs in the caller's thread: no pipeline, no queue, no bus to
//! wait for, nothing that could hang or come out in another order. Starting and
//! stopping `x264enc` and `avdec_h264` for a block takes a few milliseconds.

use gstreamer as gst;
use gstreamer::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};

/// Why an element could not do its work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElementError {
    /// The element is not installed.
    #[error("the GStreamer element {0} is not installed")]
    Missing(&'static str),
    /// It refused, and said why.
    #[error("{element}: {why}")]
    Failed {
        /// The element.
        element: &'static str,
        /// Its own words.
        why: String,
    },
}

/// Makes an element by the name of its factory.
pub(crate) fn make(factory: &'static str) -> Result<gst::Element, ElementError> {
    gst::ElementFactory::make(factory).build().map_err(|_| ElementError::Missing(factory))
}

/// What came out of an element.
pub(crate) struct Output<T> {
    /// The format, as soon as it is known.
    pub(crate) caps: Option<gst::Caps>,
    /// What was made of the buffers.
    pub(crate) items: Vec<T>,
    failed: Option<String>,
}

/// An element between two pads of ours.
pub(crate) struct Driven<T> {
    name: &'static str,
    element: gst::Element,
    bus: gst::Bus,
    input: gst::Pad,
    output: gst::Pad,
    collected: Arc<Mutex<Output<T>>>,
}

impl<T: Send + 'static> Driven<T> {
    /// Starts `element` with buffers of `caps`; what comes out shall be of one
    /// of the formats of `wanted`. Each buffer that comes out is given to `take`
    /// with its format and running time in nanoseconds (which may be negative),
    /// and what that returns is kept.
    pub(crate) fn start(
        name: &'static str,
        element: gst::Element,
        caps: &gst::Caps,
        wanted: &gst::Caps,
        take: impl Fn(&gst::Caps, i64, gst::Buffer) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, ElementError> {
        let failed = |why: &str| ElementError::Failed { element: name, why: why.to_owned() };
        let collected = Arc::new(Mutex::new(Output { caps: None, items: Vec::new(), failed: None }));
        let (sink, always) = (gst::PadDirection::Sink, gst::PadPresence::Always);
        let template = gst::PadTemplate::new("sink", sink, always, wanted);
        let template = template.map_err(|error| failed(&error.to_string()))?;
        let output = output_pad(&template, Arc::clone(&collected), take);
        let input = gst::Pad::builder(gst::PadDirection::Src).build();
        let bus = gst::Bus::new();
        element.set_bus(Some(&bus));
        let driven = Self { name, element, bus, input, output, collected };
        let sink = driven.element.static_pad("sink").ok_or_else(|| failed("it has no input"))?;
        let source = driven.element.static_pad("src").ok_or_else(|| failed("it has no output"))?;
        driven.input.link(&sink).map_err(|error| failed(&error.to_string()))?;
        source.link(&driven.output).map_err(|error| failed(&error.to_string()))?;
        driven.output.set_active(true).map_err(|error| failed(&error.to_string()))?;
        driven.input.set_active(true).map_err(|error| failed(&error.to_string()))?;
        driven.element.set_state(gst::State::Playing).map_err(|_| driven.why("it does not start"))?;
        let segment = gst::FormattedSegment::<gst::ClockTime>::new();
        let events = [
            gst::event::StreamStart::new("lamina"),
            gst::event::Caps::new(caps),
            gst::event::Segment::new(&segment),
        ];
        for event in events {
            if !driven.input.push_event(event) {
                return Err(driven.why("it does not take this format"));
            }
        }
        Ok(driven)
    }

    /// Gives the element one buffer.
    pub(crate) fn push(&self, buffer: gst::Buffer) -> Result<(), ElementError> {
        match self.input.push(buffer) {
            Ok(_) => Ok(()),
            Err(flow) => Err(self.why(&format!("it stopped ({flow:?})"))),
        }
    }

    /// Ends the stream and returns all that came out.
    pub(crate) fn finish(self) -> Result<Output<T>, ElementError> {
        if !self.input.push_event(gst::event::Eos::new()) {
            return Err(self.why("it did not finish"));
        }
        let empty = Output { caps: None, items: Vec::new(), failed: None };
        let output = std::mem::replace(&mut *lock(&self.collected), empty);
        match &output.failed {
            Some(why) => Err(ElementError::Failed { element: self.name, why: why.clone() }),
            None => Ok(output),
        }
    }

    /// What the element said about its failure, or `otherwise`.
    fn why(&self, otherwise: &str) -> ElementError {
        let said = self.bus.iter().find_map(|message| match message.view() {
            gst::MessageView::Error(error) => Some(error.error().to_string()),
            _ => None,
        });
        let why = lock(&self.collected).failed.clone().or(said).unwrap_or_else(|| otherwise.to_owned());
        ElementError::Failed { element: self.name, why }
    }
}

impl<T> Drop for Driven<T> {
    fn drop(&mut self) {
        // Nothing depends on how it stops.
        let _ = self.element.set_state(gst::State::Null);
        let _ = self.input.set_active(false);
        let _ = self.output.set_active(false);
        self.element.set_bus(None);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn output_pad<T: Send + 'static>(
    template: &gst::PadTemplate,
    collected: Arc<Mutex<Output<T>>>,
    take: impl Fn(&gst::Caps, i64, gst::Buffer) -> Result<T, String> + Send + Sync + 'static,
) -> gst::Pad {
    let chained = Arc::clone(&collected);
    gst::Pad::builder_from_template(template)
        .chain_function(move |pad, _, buffer| {
            let mut output = lock(&chained);
            let time = running_time(pad.sticky_event::<gst::event::Segment>(0), buffer.pts());
            let taken = match (&output.caps, time) {
                (Some(caps), Some(time)) => take(caps, time, buffer),
                (None, _) => Err("a buffer without a format".to_owned()),
                (_, None) => Err("a buffer without a time".to_owned()),
            };
            match taken {
                Ok(item) => {
                    output.items.push(item);
                    Ok(gst::FlowSuccess::Ok)
                }
                Err(why) => {
                    output.failed = Some(why);
                    Err(gst::FlowError::Error)
                }
            }
        })
        .event_function(move |pad, parent, event| {
            if let gst::EventView::Caps(caps) = event.view() {
                lock(&collected).caps = Some(caps.caps_owned());
            }
            gst::Pad::event_default(pad, parent, event)
        })
        .build()
}

/// Running time in nanoseconds. Encoders shift their segment so that decoding
/// times stay positive; the running time is what went in.
fn running_time(
    segment: Option<gst::event::Segment<gst::Event>>,
    pts: Option<gst::ClockTime>,
) -> Option<i64> {
    let segment = segment?;
    let segment = segment.segment().downcast_ref::<gst::ClockTime>()?;
    signed_nanos(segment.to_running_time_full(pts?)?)
}

/// A signed time in nanoseconds.
pub(crate) fn signed_nanos(time: gst::Signed<gst::ClockTime>) -> Option<i64> {
    match time {
        gst::Signed::Positive(time) => i64::try_from(time.nseconds()).ok(),
        gst::Signed::Negative(time) => i64::try_from(time.nseconds()).ok().map(std::ops::Neg::neg),
    }
}
