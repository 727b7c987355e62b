// Learns vectors of words from sentences, such that words of one subject are near each other: skip-gram with negative samples
// (Mikolov et al., NeurIPS 2013), on a table of rows.
//
//     HIPS_TOPO=switch:2 HIPS_ROOT=127.0.0.1:29500 mpirun -n 2 word_vectors
//
// Each worker has its own sentences. While it learns from one, the rows of the next are on their way to its node. Frequent words
// are wanted everywhere, so their rows move often; changes are added up, so none is lost.
//
// The text is generated: each sentence is about one of 40 subjects, each of which has 50 words, some of them frequent; four words of
// ten are any.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <hips/hips.hpp>
#include <hips/ps.hpp>

namespace {

using hips::ps::Key;

constexpr std::size_t kSubjects = 40, kWordsOfSubject = 50, kWords = kSubjects * kWordsOfSubject;
constexpr std::size_t kLength = 24;                          // of a vector
constexpr std::size_t kSentences = 3'000, kInSentence = 12;  // of all workers in an epoch
constexpr std::size_t kWindow = 3, kNegatives = 5, kEpochs = 6;
constexpr float kStep = 0.05F;

/// Two rows for each word: as the centre of a window, and as a neighbour.
Key centre(std::size_t word) {
  return word;
}
Key neighbour(std::size_t word) {
  return kWords + word;
}

/// A sentence, and the words that are not its own against which it is told apart.
struct Sentence {
  std::vector<std::size_t> words, others;
  std::vector<Key> keys;              ///< all rows that it uses, once each
  std::map<Key, std::size_t> row_of;  ///< their places in `keys`
};

Sentence drawn(std::mt19937_64& random) {
  Sentence sentence;
  const std::size_t subject = random() % kSubjects;
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::size_t i = 0; i < kInSentence; ++i) {
    const double u = uniform(random);
    const auto of_subject = static_cast<std::size_t>(u * u * static_cast<double>(kWordsOfSubject));
    const bool is_any = uniform(random) < 0.4;
    sentence.words.push_back(is_any ? random() % kWords : subject * kWordsOfSubject + of_subject);
  }
  for (std::size_t i = 0; i < 2 * kInSentence; ++i) sentence.others.push_back(random() % kWords);
  const auto use = [&](Key key) {
    if (sentence.row_of.try_emplace(key, sentence.keys.size()).second) sentence.keys.push_back(key);
  };
  for (const std::size_t word : sentence.words) {
    use(centre(word));
    use(neighbour(word));
  }
  for (const std::size_t word : sentence.others) use(neighbour(word));
  return sentence;
}

class WordLearner {
 public:
  explicit WordLearner(hips::Communicator& comm)
      : comm_(comm),
        table_(comm, {.num_keys = 2 * kWords, .row_length = kLength}),
        random_(static_cast<std::uint64_t>(comm.rank()) + 1) {
    // Centres begin at random, each set by one rank; neighbours at zero.
    std::uniform_real_distribution<float> first(-0.5F / kLength, 0.5F / kLength);
    for (std::size_t word = static_cast<std::size_t>(comm.rank()); word < kWords;
         word += static_cast<std::size_t>(comm.size())) {
      std::vector<float> row(kLength);
      for (float& value : row) value = first(random_);
      const Key key = centre(word);
      table_.set(std::span(&key, 1), row);
    }
    comm_.barrier();
  }

  void epoch() {
    const std::size_t own = kSentences / static_cast<std::size_t>(comm_.size());
    Sentence next = drawn(random_);
    hips::Request coming = table_.ilocalize(next.keys);
    for (std::size_t i = 0; i < own; ++i) {
      const Sentence sentence = std::move(next);
      coming.wait();
      next = drawn(random_);
      coming = table_.ilocalize(next.keys);
      learn(sentence);
    }
    coming.wait();
    comm_.barrier();
  }

  /// The share of words whose nearest one, by the angle between centres, is of their subject. On rank 0; other ranks wait.
  double share_of_right_neighbours() {
    double right = 0;
    if (comm_.rank() == 0) {
      std::vector<Key> keys;
      for (std::size_t word = 0; word < kWords; ++word) keys.push_back(centre(word));
      std::vector<float> rows(kWords * kLength);
      table_.pull(keys, rows);
      for (std::size_t word = 0; word < kWords; ++word)
        right += nearest(rows, word) / kWordsOfSubject == word / kWordsOfSubject ? 1 : 0;
    }
    comm_.barrier();
    return right / static_cast<double>(kWords);
  }

 private:
  void learn(const Sentence& sentence) {
    rows_.resize(sentence.keys.size() * kLength);
    table_.pull(sentence.keys, rows_);
    changes_ = rows_;
    const auto row = [&](Key key) { return &rows_[sentence.row_of.at(key) * kLength]; };
    for (std::size_t at = 0; at < kInSentence; ++at) {
      float* const own = row(centre(sentence.words[at]));
      for (std::size_t near = at < kWindow ? 0 : at - kWindow; near <= at + kWindow && near < kInSentence;
           ++near) {
        if (near == at) continue;
        tell(own, row(neighbour(sentence.words[near])), 1);
        for (std::size_t i = 0; i < kNegatives; ++i)
          tell(own, row(neighbour(sentence.others[random_() % sentence.others.size()])), 0);
      }
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) changes_[i] = rows_[i] - changes_[i];
    table_.push(sentence.keys, changes_);
  }

  /// One step of descent: are the two words neighbours (1) or not (0)?
  static void tell(float* own, float* other, float label) {
    float product = 0;
    for (std::size_t k = 0; k < kLength; ++k) product += own[k] * other[k];
    const float change = kStep * (label - 1 / (1 + std::exp(-product)));
    for (std::size_t k = 0; k < kLength; ++k) {
      const float before = own[k];
      own[k] += change * other[k];
      other[k] += change * before;
    }
  }

  static std::size_t nearest(const std::vector<float>& rows, std::size_t word) {
    std::size_t best = word;
    float most = -2;
    for (std::size_t other = 0; other < kWords; ++other) {
      float product = 0, square = 1e-20F;
      for (std::size_t k = 0; k < kLength; ++k) {
        product += rows[word * kLength + k] * rows[other * kLength + k];
        square += rows[other * kLength + k] * rows[other * kLength + k];
      }
      const float cosine = product / std::sqrt(square);
      if (other == word || cosine <= most) continue;
      most = cosine;
      best = other;
    }
    return best;
  }

  hips::Communicator& comm_;
  hips::ps::Table<float> table_;
  std::mt19937_64 random_;
  std::vector<float> rows_, changes_;
};

}  // namespace

int main() {
  try {
    hips::Communicator comm = hips::Communicator::from_environment();
    WordLearner worker(comm);
    for (std::size_t epoch = 1; epoch <= kEpochs; ++epoch) {
      const auto begin = std::chrono::steady_clock::now();
      worker.epoch();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
      const double right = worker.share_of_right_neighbours();
      if (comm.rank() == 0)
        std::printf("epoch %zu: %.1f %% of words are nearest to one of their subject, %.3f s\n", epoch,
                    100 * right, took.count());
    }
  } catch (const hips::Error& error) {
    std::fprintf(stderr, "word_vectors: %s\n", error.what());
    return 1;
  }
}
