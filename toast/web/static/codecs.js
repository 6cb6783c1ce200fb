// Whether this browser has the codecs of a film, asked before it fails and said in plain words.

// FFmpeg's codec names -> how a browser is asked. A typical profile each: a browser that has the
// codec has this profile. null: no browser has a name for it.
const VIDEO = {
  h264: ["H.264", 'video/mp4; codecs="avc1.640028"'],
  hevc: ["H.265 (HEVC)", 'video/mp4; codecs="hvc1.1.6.L120.90"'],
  av1: ["AV1", 'video/mp4; codecs="av01.0.08M.08"'],
  libdav1d: ["AV1", 'video/mp4; codecs="av01.0.08M.08"'],
  vp8: ["VP8", 'video/webm; codecs="vp8"'],
  vp9: ["VP9", 'video/webm; codecs="vp09.00.40.08"'],
  theora: ["Theora", 'video/ogg; codecs="theora"'],
  mpeg4: ["MPEG-4 part 2 (DivX, Xvid)", 'video/mp4; codecs="mp4v.20.9"'],
  mpeg2video: ["MPEG-2", null],
  mpeg1video: ["MPEG-1", null],
  vc1: ["VC-1", null],
  wmv3: ["WMV 9", null],
  msmpeg4v3: ["DivX 3", null],
  prores: ["ProRes", null],
  vvc: ["H.266 (VVC)", 'video/mp4; codecs="vvc1.1.L51.CQA.O1+3"'],
};
const AUDIO = {
  aac: ["AAC", 'audio/mp4; codecs="mp4a.40.2"'],
  mp3: ["MP3", "audio/mpeg"],
  mp3float: ["MP3", "audio/mpeg"],
  opus: ["Opus", 'audio/webm; codecs="opus"'],
  vorbis: ["Vorbis", 'audio/webm; codecs="vorbis"'],
  flac: ["FLAC", 'audio/mp4; codecs="flac"'],
  ac3: ["Dolby Digital (AC-3)", 'audio/mp4; codecs="ac-3"'],
  eac3: ["Dolby Digital Plus (E-AC-3)", 'audio/mp4; codecs="ec-3"'],
  dts: ["DTS", null],
  dca: ["DTS", null],
  truehd: ["Dolby TrueHD", null],
  alac: ["ALAC", 'audio/mp4; codecs="alac"'],
  mp2: ["MP2", null],
  wmav2: ["WMA", null],
};

/** A codec's name as people know it. */
export function codecName(codec) {
  return (VIDEO[codec] ?? AUDIO[codec] ?? [codec])[0];
}

// Asked of the element: the newer interface, MediaCapabilities, complains aloud about types that it
// has not heard of, and these are what we ask about.
function plays(kind, type) {
  return type !== null && document.createElement(kind).canPlayType(type) !== "";
}

/**
 * What of a film this browser cannot play.
 * @returns {{picture: string|null, sound: string|null}} names of the codecs that it lacks; a codec
 *   that we do not know is given the benefit of the doubt
 */
export function lacking(film) {
  const ask = (kind, table, codec) => {
    const known = codec ? table[codec] : null;
    return known && !plays(kind, known[1]) ? known[0] : null;
  };
  return { picture: ask("video", VIDEO, film.video_codec), sound: ask("audio", AUDIO, film.audio_codec) };
}
