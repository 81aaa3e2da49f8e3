// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers as the tool's text prints them, and elements. Strings become text only: never markup.
"use strict";

function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = bytes;
  let unit = 0;
  for (; value >= 1024 && unit + 1 < units.length; ++unit) value /= 1024;
  return unit === 0 ? `${Math.round(bytes)} B` : `${value.toFixed(1)} ${units[unit]}`;
}

const secondsText = (seconds) => `${seconds.toFixed(2)} s`;
const durationText = (seconds) => (seconds < 10 ? `${(seconds * 1000).toFixed(1)} ms` : `${seconds.toFixed(1)} s`);
const shareText = (share) => `${Math.round(share * 100)} %`;
const countText = (count) => Math.round(count).toLocaleString("en");
const signed = (text, value) => (value > 0 ? `+${text}` : text);

function numberText(value) {
  if (value === 0 || Math.abs(value) >= 100) return countText(value);
  return String(Number(value.toPrecision(3)));
}

// Characters that nobody sees, or that turn the direction of text, would let a name look like another.
const printable = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined) continue;
    made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// Calls back when the reader turns from light to dark or back.
function onScheme(callback) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", callback);
}
