#pragma once

#include <concepts>
#include <ranges>
#include <span>
#include <type_traits>

namespace hips {

/// Memory of the caller that a call may use until it is complete: a std::span, or an lvalue of a std::vector,
/// a std::array, a C array, a RegisteredBuffer or any other contiguous range. No temporary container: it
/// would be gone before a non-blocking call is complete.
template <typename Range>
concept InputBuffer = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    std::ranges::borrowed_range<Range>;

/// An InputBuffer that a call may write.
template <typename Range>
concept OutputBuffer =
    InputBuffer<Range> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

/// The type of a buffer's elements, without const.
template <InputBuffer Range>
using ElementOf = std::ranges::range_value_t<Range>;

namespace detail {

/// Functions that take spans deduce T themselves.
template <typename Range, typename T>
concept DynamicSpanOf = std::same_as<std::remove_cvref_t<Range>, std::span<T>>;

template <typename Out>
concept DeducedOutput = OutputBuffer<Out> && !DynamicSpanOf<Out, ElementOf<Out>>;

template <typename In, typename Out>
concept DeducedBuffers =
    InputBuffer<In> && OutputBuffer<Out> && std::same_as<ElementOf<In>, ElementOf<Out>> &&
    !(DynamicSpanOf<In, const ElementOf<In>> && DynamicSpanOf<Out, ElementOf<Out>>);

/// A list whose vectors outlive the statement: one with a name, or one of spans.
template <typename Vectors>
concept LastingVectors = std::ranges::borrowed_range<Vectors> ||
    std::ranges::borrowed_range<std::remove_cvref_t<std::ranges::range_reference_t<Vectors>>>;

/// A list of vectors whose element type is to be deduced: not the span of spans that the call itself takes.
template <typename Vectors>
concept DeducedVectors = std::ranges::sized_range<Vectors> &&
    OutputBuffer<std::ranges::range_reference_t<Vectors>> && LastingVectors<Vectors> &&
    !DynamicSpanOf<Vectors, const std::span<ElementOf<std::ranges::range_reference_t<Vectors>>>>;
template <DeducedVectors Vectors>
using ElementOfVectors = ElementOf<std::ranges::range_reference_t<Vectors>>;

template <InputBuffer In>
std::span<const ElementOf<In>> input(In&& in) {
  return {std::ranges::data(in), std::ranges::size(in)};
}
template <OutputBuffer Out>
std::span<ElementOf<Out>> output(Out&& out) {
  return {std::ranges::data(out), std::ranges::size(out)};
}

}  // namespace detail
}  // namespace hips
